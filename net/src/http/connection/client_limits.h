#pragma once

#include <coir/detail/intrusive_list.h>
#include <coir/http/server.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace coir::http {

// ClientLimits holds what each client address has taken of ServerOptions' limits per client: how many connections, and
// the requests of the last second. IPv6 addresses count by their /64, which one subscriber has to himself; an IPv4
// address is the same client by either family. Unix sockets have no address and no limit.
//
// The table is bounded: a client with connections has an entry, and there are as many as connections can be. Among clients
// without connections, the one that left first is evicted, so that a client with ever new addresses
// only forgets its own past. Entries are found by a hash with a multiplier of the process's own: nobody can choose
// addresses that fall together.
//
// A request is counted with a bucket of tokens that refills at the rate and holds one second's worth, or what open_rate
// says.
//
// Cost without limits: a comparison. With them, a system call and a short lock for a connection, the lock for a
// request.
class ClientLimits {
 public:
  // Ticket names a connection's entry; 0 is no entry, and no limit.
  using Ticket = std::uint32_t;

  ClientLimits() noexcept = default;
  ~ClientLimits();
  ClientLimits(const ClientLimits&) = delete;
  ClientLimits& operator=(const ClientLimits&) = delete;

  // open reserves the table if `options` limit clients, and charges account::connections with all of it. False: no
  // memory.
  [[nodiscard]] bool open(const ServerOptions& options) noexcept;
  // open_rate does for a limit of requests alone, of clients that come and go with each: so many are remembered.
  [[nodiscard]] bool open_rate(std::size_t clients, std::uint32_t rate, std::uint32_t burst) noexcept;

  // rate_bytes is what open_rate charges.
  static std::size_t rate_bytes(std::size_t clients) noexcept { return bytes_of(clients); }
  bool is_open() const noexcept { return entries_ != nullptr; }

  // enter counts a new connection; nothing is returned for one too many, which is not counted. leave takes it back.
  std::optional<Ticket> enter(const TcpStream& stream) noexcept {
    return entries_ == nullptr ? Ticket{0} : enter(key_of(stream));
  }
  void leave(Ticket ticket) noexcept {
    if (ticket != 0) forget_one(ticket);
  }

  // may_ask counts a request. False: it is one too many.
  bool may_ask(Ticket ticket) noexcept { return rate_ == 0 || ticket == 0 || take_token(ticket); }

  // may_ask_once counts a request of a client that was not entered. False: it is one too many.
  bool may_ask_once(std::uint64_t key) noexcept {
    if (entries_ == nullptr) return true;
    const auto ticket = enter(key);
    const bool may = may_ask(*ticket);
    leave(*ticket);
    return may;
  }

  // key_of is what a client is known by; 0 has no limit.
  static std::uint64_t key_of(const Address& address) noexcept;
  // enter with a key is for tests too.
  std::optional<Ticket> enter(std::uint64_t key) noexcept;

 private:
  struct Entry {
    std::uint64_t key;
    Entry* next_same;  // of those with its hash
    Entry *next, *previous;
    std::uint32_t connections;
    std::uint32_t thousandths;  // of tokens
    std::uint32_t seen_ms;      // when it got tokens last, on a clock that wraps
  };

  static std::uint64_t key_of(const TcpStream& stream) noexcept;
  static std::uint32_t now_ms() noexcept;
  std::uint32_t full_bucket() const noexcept { return burst_ * 1000; }
  static std::size_t bytes_of(std::size_t most) noexcept;
  bool reserve(std::size_t most) noexcept;
  Entry*& chain(std::uint64_t key) noexcept;
  Entry* find(std::uint64_t key) noexcept;
  Entry* take_unused() noexcept;
  void forget_one(Ticket ticket) noexcept;
  bool take_token(Ticket ticket) noexcept;

  Spinlock lock_;
  std::uint32_t connections_ = 0;  // the most of each; 0: any number
  std::uint32_t rate_ = 0;
  std::uint32_t burst_ = 0;  // requests at once
  std::uint32_t most_ = 0;   // entries
  std::uint32_t used_ = 0;   // those that were ever used: the rest of the array is untouched
  unsigned shift_ = 0;       // a hash's upper bits number its chain
  std::uint64_t multiplier_ = 0;
  std::size_t bytes_ = 0;
  Entry* entries_ = nullptr;
  Entry** chains_ = nullptr;
  coir::detail::IntrusiveList<Entry> gone_;  // without connections, the first to go first
};

}  // namespace coir::http
