#pragma once

// UDP, Unix datagrams and multicast.
//
//   auto socket = DatagramSocket::bind(*Address::parse("*:7000"));
//   if (!socket) return complain(socket.error());
//   while (auto query = socket->receive_from(buffer)) {
//     if (!query->truncated()) static_cast<void>(socket->answer(query->bytes, *query));
//   }

#include <coir/deadline.h>
#include <coir/detail/used_descriptor.h>
#include <coir/error.h>
#include <coir/net/address.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

// LocalEnd is this machine's end of a datagram: the address that it was sent to, and the interface that it came by; or
// those that it is to leave by. A value; one that is all zero leaves both to the kernel.
struct LocalEnd {
  // As the socket's family has it: 4 bytes of IPv4 and zeros, or 16 of IPv6, where IPv4 is mapped ("::ffff:192.0.2.1").
  // For a datagram to a group: the interface's own address for IPv4, else zeros.
  unsigned char address[16] = {};
  std::uint32_t interface = 0;  // its index, as if_nametoindex(3) has it
  bool group = false;           // it was sent to a multicast group, or to all
};

namespace detail {
// kLocalEndSpace is the control data of one: a socket of both families has two parts for IPv4.
inline constexpr std::size_t kLocalEndSpace = CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo));
}  // namespace detail

// Datagram is one that was received.
struct Datagram {
  std::string_view bytes;      // in the caller's buffer; a datagram may be empty
  std::size_t lost_bytes = 0;  // of its end, which did not fit the buffer
  Address peer;                // who sent it; an empty path if a Unix socket without a name did
  LocalEnd local;              // of a bound IP socket

  bool truncated() const noexcept { return lost_bytes != 0; }
};

// DatagramBatch is up to kMost datagrams that are received or sent by one system call. It holds their addresses and
// refers to the caller's buffers. About 5 KB, so it does not belong onto a fiber's stack. Any context; no errors.
class DatagramBatch {
 public:
  static constexpr std::size_t kMost = 16;

  // add takes a buffer for one more datagram to be received. False: the batch is full, or one to be sent.
  bool add(std::span<char> into) noexcept;
  // add takes one more datagram to be sent; `bytes` stays the caller's. False: the batch is full, or one of buffers.
  bool add(std::string_view bytes, const Address& to, const LocalEnd& from = {}) noexcept;

  // operator[] is a datagram that receive_batch received, one of as many as that returned.
  Datagram operator[](std::size_t index) const noexcept;
  std::size_t size() const noexcept { return count_; }
  void clear() noexcept { count_ = 0; }

 private:
  friend class DatagramSocket;
  struct Slot {
    alignas(8) unsigned char name[112];
    alignas(8) unsigned char control[detail::kLocalEndSpace];
    iovec part;
    LocalEnd from;
    std::uint8_t name_length;
  };

  // prepare has the kernel's headers refer to the slots, from `first` on.
  void prepare(std::size_t first, int fd, int family) noexcept;

  mmsghdr headers_[kMost];
  Slot slots_[kMost];
  std::uint8_t count_ = 0;
  bool outgoing_ = false;
};

// DatagramSocket is a UDP or a Unix datagram socket. Move-only; the destructor closes.
//
// Called the same way from a fiber, a thread and a build without fibers. One receiver and one sender may use a socket at
// the same time. Nothing is allocated; a call that need not wait is one system call. Options::receive_bytes bounds
// the datagrams that the kernel holds until they are received; beyond that it drops datagrams.
//
// An unconnected socket reports no ICMP error (IP_RECVERR stays off): no peer can make its calls fail by refusing
// datagrams. A connected one does: the next call fails with ECONNREFUSED, and has neither sent nor received.
//
// The parts: datagram.cpp, datagram_batch.cpp, datagram_setup.cpp. Errors of all calls that wait: those of coir::wait.
class DatagramSocket {
 public:
  struct Options {
    bool share = false;             // others may be bound to the same port, as for multicast (SO_REUSEADDR)
    bool broadcast = false;         // datagrams may be sent to all
    int receive_bytes = 32 * 1024;  // what waits to be received (the kernel takes twice as much); 0: its default
  };

  DatagramSocket() noexcept = default;
  // No call may be in progress on either side.
  DatagramSocket(DatagramSocket&& other) noexcept = default;
  DatagramSocket& operator=(DatagramSocket&& other) noexcept;
  ~DatagramSocket() { close(); }

  // bind opens a socket on an address. ":53" and "*:53" take both families, or IPv4 alone where the kernel has no IPv6.
  // The path of a Unix socket that nobody has open any more is taken over. From groups it receives only those that it has
  // joined. Never waits.
  // Errors: unsupported (the kernel lacks the family), limit (no descriptor is left), not_found (no folder for the Unix
  // socket), no_memory, invalid, system (EADDRINUSE, EACCES ...).
  [[nodiscard]] static std::expected<DatagramSocket, Error> bind(const Address& at, Options options) noexcept;
  [[nodiscard]] static std::expected<DatagramSocket, Error> bind(const Address& at) noexcept {
    return bind(at, Options());
  }

  // connect opens a socket on a port that the kernel chooses at random, and connects it as connect_to does. A Unix
  // socket has no name then, so that nobody can answer it: bind one, then connect_to. Never waits. Errors: as bind;
  // those of connect_to.
  [[nodiscard]] static std::expected<DatagramSocket, Error> connect(const Address& to, Options options) noexcept;
  [[nodiscard]] static std::expected<DatagramSocket, Error> connect(const Address& to) noexcept {
    return connect(to, Options());
  }

  // connect_to has the socket send to `peer` and receive from it alone; what others sent before stays to be received.
  // Never waits. Errors: closed, not_found (no such Unix socket), unsupported, invalid, no_memory, limit, system
  // (ENETUNREACH; ECONNREFUSED: nobody has the Unix socket open ...).
  [[nodiscard]] std::expected<void, Error> connect_to(const Address& peer) noexcept;

  // receive_from waits for a datagram and puts as much of it into `into` as fits; the rest is lost, and told. With
  // Deadline::now() it takes what has come. Descriptors that a Unix peer passes are closed.
  // Errors: timed_out, cancelled, closed (here), no_memory, system (ECONNREFUSED: what this connected socket sent met a
  // closed port ...).
  [[nodiscard]] std::expected<Datagram, Error> receive_from(std::span<char> into,
                                                            Deadline deadline = Deadline::never()) noexcept;

  // send_to sends one datagram, whole or not at all, by the address and interface of `from` where that names any. It
  // waits for room in this socket; whether a datagram arrives nobody tells.
  // Errors: timed_out, cancelled, closed (here, or by the Unix peer), limit (it is longer than the family or the
  // interface takes), queue_full (a Unix peer's queue is full: try again later), invalid (no such interface, or an
  // address of another kind), not_found (no such Unix socket), no_memory, unsupported, system (ENETUNREACH:
  // also for want of such a local address; EHOSTUNREACH; EACCES: to all without Options::broadcast ...).
  [[nodiscard]] std::expected<void, Error> send_to(std::string_view bytes, const Address& to, const LocalEnd& from,
                                                   Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<void, Error> send_to(std::string_view bytes, const Address& to,
                                                   Deadline deadline = Deadline::never()) noexcept {
    return send_to(bytes, to, LocalEnd(), deadline);
  }

  // answer sends to whoever sent `to`, from the address that it was sent to. By the routes; but an answer to what came
  // to a group, or to a link-local address, leaves by the interface where that came in. Errors: as send_to.
  [[nodiscard]] std::expected<void, Error> answer(std::string_view bytes, const Datagram& to,
                                                  Deadline deadline = Deadline::never()) noexcept;

  // send sends to the peer of a connected socket. A full queue of a Unix peer is waited for.
  // Errors: as send_to; invalid (it is not connected); system (ECONNREFUSED: what was sent before met a closed port).
  [[nodiscard]] std::expected<void, Error> send(std::string_view bytes, Deadline deadline = Deadline::never()) noexcept;

  // receive_batch waits for a datagram and takes as many as have come, up to the batch's buffers. Returns how many.
  // Errors: as receive_from; invalid (the batch has no buffers).
  [[nodiscard]] std::expected<std::size_t, Error> receive_batch(DatagramBatch& batch,
                                                                Deadline deadline = Deadline::never()) noexcept;

  // send_batch sends the batch's datagrams from `first` on, in order, and returns how many it could, at least one: the
  // caller goes on with the rest. An error is of the datagram `first`. Not for Unix sockets.
  // Errors: as send_to; invalid (there is nothing to send).
  [[nodiscard]] std::expected<std::size_t, Error> send_batch(DatagramBatch& batch, std::size_t first = 0,
                                                             Deadline deadline = Deadline::never()) noexcept;

  // join receives what is sent to a group (its port is not looked at) and comes by an interface. Joining twice is joining
  // once. A socket of both families joins groups of both. leave ends it. Neither waits.
  // Errors: closed, not_found (no such interface; leave: not joined there), limit (of groups, see igmp_max_memberships),
  // invalid (no group), no_memory, unsupported, system.
  [[nodiscard]] std::expected<void, Error> join(const Address& group, unsigned interface) noexcept;
  [[nodiscard]] std::expected<void, Error> leave(const Address& group, unsigned interface) noexcept;

  // Multicast is how datagrams to groups are sent.
  struct Multicast {
    unsigned interface = 0;  // by which they leave where no LocalEnd names one; 0: by the routes
    int hops = 1;            // how many routers pass them on, less one: 0 to 255
    bool loop = true;        // this machine receives them too
  };
  // set_multicast applies to both families of a socket that has both. Errors: as join.
  [[nodiscard]] std::expected<void, Error> set_multicast(const Multicast& how) noexcept;
  // set_hops is the TTL or hop limit of all other datagrams: 1 to 255. Errors: as join.
  [[nodiscard]] std::expected<void, Error> set_hops(int hops) noexcept;

  // local_address is the bound address, with the port that the kernel chose; of "*:53" it is "[::]:53". Errors: closed, system.
  [[nodiscard]] std::expected<Address, Error> local_address() const noexcept;

  // close ends it at once, and removes the path of a Unix socket; calls that wait return `closed`. Idempotent.
  void close() noexcept;

  bool is_open() const noexcept { return socket_.is_open(); }
  int fd() const noexcept { return socket_.number(); }

 private:
  DatagramSocket(int fd, int family) noexcept : socket_(fd), family_(static_cast<std::uint8_t>(family)) {}
  static std::expected<DatagramSocket, Error> open(const Address& of, const Options& options) noexcept;
  std::expected<void, Error> send_message(std::string_view bytes, const Address* to, const LocalEnd& from,
                                          Deadline deadline) noexcept;
  // wait_for_room is what a sender does after EAGAIN.
  std::expected<void, Error> wait_for_room(int fd, bool connected, Deadline deadline) noexcept;
  std::expected<void, Error> set(int level, int name, const void* value, socklen_t size) noexcept;
  std::expected<void, Error> change_membership(const Address& group, unsigned interface, bool join) noexcept;

  [[no_unique_address]] detail::UsedDescriptor socket_;
  std::uint8_t family_ = 0;
};
static_assert(sizeof(DatagramSocket) == 8);

}  // namespace coir
