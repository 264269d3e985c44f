#pragma once

#include <coir/atomic.h>
#include <coir/budget.h>
#include <coir/tls.h>
#include <coir/wait.h>
#include <coir/worker_stack.h>
#include <mbedtls/error.h>
#include <mbedtls/ssl.h>

#include <string_view>
#include <utility>

#include "socket/linger.h"
#include "tls/config.h"
#include "tls/library/record_buffers.h"
#include "tls/library/session_allocator.h"
#include "tls/library/thread_mutex.h"

namespace coir::tls {

struct Ticket;

// Session is the state of a TLS session beside its socket.
//
// Every call into mbedTLS goes through `call`: on the worker's stack, one at a time, with record buffers, and paid for
// by the session's allocator. None of them waits. A call that answers WANT_READ or WANT_WRITE is followed by `await`
// and repeated, with the same arguments: its caller is blocked meanwhile.
//
// session.cpp reads and writes; session_life.cpp has its beginning, rest and end; handshake.cpp its handshake;
// refusal.cpp what is said when that fails.
//
// A stream may be closed while another fiber reads from it: the session is freed when the last of its users has
// left, as the descriptor is.
class Session {
 public:
  // create makes the session of a connected socket, with its handshake before it, which has to be over by `deadline`
  // and offers the ticket if there is one.
  static std::expected<Session*, Error> create(Config& config, int fd, const char* name, const Ticket* ticket,
                                               Deadline deadline) noexcept;

  // advance and handshake: see Stream. Errors: as TlsStream::accept.
  std::expected<bool, Error> advance(TcpStream& below) noexcept;
  std::expected<void, Error> handshake(TcpStream& below) noexcept;
  Deadline handshake_deadline() const noexcept { return handshake_deadline_; }
  // awaited names the readiness that the handshake waits for; mark_ready says that it has come.
  Direction awaited() const noexcept { return awaited_; }
  void mark_ready(Direction direction) noexcept {
    const Holding held(mutex_);
    (direction == Direction::readable ? drained_ : filled_) = false;
  }

  // ask_for notes the name that a client asks a server for.
  void ask_for(std::string_view name) noexcept;
  bool resumed() const noexcept { return resumed_; }
  const TlsPeer* peer() const noexcept { return peer_; }
  // ticket returns the ticket by which the session may be resumed. Errors: as TlsStream::ticket.
  std::expected<Ticket*, Error> ticket() noexcept;
  const mbedtls_ssl_context& ssl() const noexcept { return ssl_; }

 private:
  friend std::expected<std::size_t, Error> read(Session&, TcpStream&, std::span<char>, Deadline) noexcept;
  friend std::expected<std::size_t, Error> write_some(Session&, TcpStream&, std::span<const iovec>, Deadline) noexcept;
  friend std::expected<std::size_t, Error> send_file(Session&, TcpStream&, int, std::uint64_t, std::size_t,
                                                     Deadline) noexcept;
  friend bool drained(Session&) noexcept;
  friend bool midway(Session&) noexcept;
  friend bool has_told_fault(Session&) noexcept;
  friend void rest(Session&) noexcept;
  friend void shutdown_write(Session&) noexcept;
  friend void end(Session*, bool) noexcept;

  // User keeps the session, and the number of its descriptor, while one of its calls is under way. False: the connection
  // was closed before.
  class User {
   public:
    // It counts before it lets others run: a close by one of them then leaves the session to this call.
    User(Session& session, TcpStream& below) noexcept : session_(counted(session)), use_(below.use()) {
      spend_budget(kSystemCallCost);
    }
    ~User() { leave(session_); }
    explicit operator bool() const noexcept { return static_cast<bool>(use_); }

   private:
    static Session& counted(Session& session) noexcept {
      session.users_.fetch_add(1, std::memory_order_relaxed);
      return session;
    }

    Session& session_;
    const coir::detail::UsedDescriptor::Use use_;
  };

  enum class Step : unsigned char { over, sliced, failed, want_read, want_write };

  Session(Config& config, int fd, Deadline handshake_deadline) noexcept;
  ~Session();
  static void leave(Session& session) noexcept;

  int set_up(const char* name, const Ticket* ticket) noexcept;
  template <class F>
  int call(F f) noexcept;
  int handshake_step() noexcept;
  Step handshake_slice(int& code) noexcept;
  std::expected<void, Error> complete() noexcept;
  std::expected<void, Error> await(Direction direction, Deadline deadline) noexcept;
  // has_input tells whether received bytes remain: WANT_READ then means that the call has taken its share. With the
  // mutex held.
  bool has_input() const noexcept { return ahead_at_ != ahead_end_ || !drained_; }
  int count(unsigned char* into, std::size_t taken) noexcept;
  // yield_to_events lets others run after such a share. Errors: timed_out, cancelled.
  static std::expected<void, Error> yield_to_events(Deadline deadline) noexcept;
  void tell_fault(int code) noexcept;
  std::unexpected<Error> failed(int code) noexcept;
  // linger follows a handshake that has failed. Its result is as that of advance: the error once the peer has had time
  // to read why.
  std::expected<bool, Error> linger() noexcept;
  void begin_linger() noexcept;
  int last_word() noexcept;
  void say_goodbye() noexcept;
  template <class Fill>
  std::expected<std::size_t, Error> write_records(TcpStream& below, std::size_t wanted, Deadline deadline,
                                                  Fill fill) noexcept;
  bool attach(bool spare_only) noexcept;
  void detach() noexcept;

  // The functions by which mbedTLS sends and receives.
  static int send_bytes(void* session, const unsigned char* from, size_t size);
  static int receive_bytes(void* session, unsigned char* into, size_t size);

  mbedtls_ssl_context ssl_;
  Config& config_;
  Deadline handshake_deadline_;
  SessionAllocator allocator_;
  RecordBuffers* buffers_ = nullptr;
  TlsPeer* peer_ = nullptr;
  int fd_;
  int io_error_ = 0;  // errno of the socket call that failed
  Error failure_{};   // the error that ended the session, for every later call; guarded by mutex_, as mbedTLS is
  ThreadMutex mutex_;
  Linger linger_;
  Atomic<std::uint32_t> users_{1};  // the stream is one
  Atomic<bool> ended_{false};
  std::uint16_t ahead_at_ = 0, ahead_end_ = 0;  // what was read ahead
  std::uint16_t pending_ = 0;                   // bytes of the record that waits to be sent
  std::uint16_t credit_ = 0;                    // bytes sent that were not counted yet
  std::uint32_t asked_name_ = 0;                // a digest of the name that the client asks for; 0 for none
  std::uint16_t taken_ = 0;                     // bytes that this call into mbedTLS has received
  std::uint8_t takes_ = 0;                      // in how many pieces
  std::uint8_t cipher_changes_ = 0;             // ChangeCipherSpec records received
  bool alerted_ = false;                        // the last call into mbedTLS has sent the peer an alert
  bool lingering_ = false;                      // the handshake has failed, and the peer is told why
  bool hung_up_ = false;                        // the socket has ended
  bool drained_ = false;                        // the last read took all there was
  bool more_follows_ = false;                   // the record being written is not the last of its batch
  bool filled_ = false;                         // the last write left the socket's buffer full
  bool established_ = false;
  bool resumed_ = false;
  bool said_goodbye_ = false;
  bool heard_goodbye_ = false;  // nothing more comes to read; writing continues
  Direction awaited_ = Direction::readable;
  unsigned char counter_[8] = {};  // of records received, while there are no buffers
};

// call runs f in mbedTLS. MBEDTLS_ERR_SSL_ALLOC_FAILED when there are no record buffers.
template <class F>
int Session::call(F f) noexcept {
  const Holding held(mutex_);
  // relaxed: the fiber that ends the session holds the mutex meanwhile.
  if (ended_.load(std::memory_order_relaxed)) return MBEDTLS_ERR_SSL_CONN_EOF;
  if (failure_.code != ErrorCode{}) return MBEDTLS_ERR_ERROR_GENERIC_ERROR;  // `failed` knows which
  if (!attach(false)) return MBEDTLS_ERR_SSL_ALLOC_FAILED;
  taken_ = takes_ = 0;
  alerted_ = false;
  const Paying paying(allocator_);
  return on_worker_stack(f);
}

}  // namespace coir::tls
