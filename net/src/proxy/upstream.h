#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/deadline.h>
#include <coir/detail/intrusive_list.h>
#include <coir/error.h>
#include <coir/net/stream.h>
#include <coir/resting_wait.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>
#include <utility>

namespace coir::http {

class UpstreamGroup;

// UpstreamFault says why a lease has failed.
enum class UpstreamFault : std::uint8_t {
  stale,      // a reused connection was closed before a byte of a response: nothing is wrong with the upstream
  cut,        // it hung up before the response was whole
  malformed,  // what it sent is no response
  timed_out,  // it said nothing in time
};

// UpstreamConnection is a connection to an upstream, in use or resting in its group's pool, where it sleeps until its
// upstream hangs up or says what nobody has asked for: both end it. Charged to account::connections.
struct UpstreamConnection : RestingWait {
  Stream stream;
  UpstreamGroup* group = nullptr;
  UpstreamConnection* previous = nullptr;
  UpstreamConnection* next = nullptr;
  bool reused = false;  // it has carried a request before
  bool rests = false;   // guarded by the group's lock_
};

// UpstreamLease is a connection to an upstream for one exchange. It is ended by give_back or failed; one that is dropped
// is closed. Move-only; one word, as a tunnel that rests holds one.
class UpstreamLease {
 public:
  UpstreamLease() noexcept = default;
  explicit UpstreamLease(UpstreamConnection& connection) noexcept : connection_(&connection) {}
  UpstreamLease(UpstreamLease&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  UpstreamLease& operator=(UpstreamLease&& other) noexcept {
    if (this != &other) {
      give_back(false);
      connection_ = std::exchange(other.connection_, nullptr);
    }
    return *this;
  }
  ~UpstreamLease() { give_back(false); }

  explicit operator bool() const noexcept { return connection_ != nullptr; }
  Stream& stream() const noexcept { return connection_->stream; }
  bool reused() const noexcept { return connection_->reused; }

  // give_back ends the lease. The connection rests in the pool if it is `reusable`: the exchange is over on both sides
  // and nothing more has come. Otherwise it is closed in good order. Idempotent. Never waits.
  void give_back(bool reusable) noexcept;

  // failed ends the lease and closes the connection; the group hears why. Idempotent. Never waits.
  void failed(UpstreamFault fault) noexcept;

 private:
  UpstreamConnection* connection_ = nullptr;
};

// UpstreamChoice is what the choice of an upstream depends on.
struct UpstreamChoice {
  std::uint64_t key = 0;     // for a group that chooses by hash
  bool must_be_new = false;  // no connection of the pool
};

// UpstreamGroup is servers of which each may answer a request.
class UpstreamGroup {
 public:
  // `address` is where the one server of the group listens.
  explicit UpstreamGroup(const Address& address) noexcept : address_(address) {}
  UpstreamGroup(const UpstreamGroup&) = delete;
  UpstreamGroup& operator=(const UpstreamGroup&) = delete;
  ~UpstreamGroup();

  // take returns a connection of the pool that is quiet, or a new one. Errors: timed_out, cancelled; limit (no upstream
  // may be asked now: 503); all others say that none could be connected to (502).
  [[nodiscard]] std::expected<UpstreamLease, Error> take(const UpstreamChoice& choice, Deadline deadline) noexcept;

 private:
  friend class UpstreamLease;
  void rest(UpstreamConnection& connection) noexcept;
  static void woken(RestingWait& resting) noexcept;
  static void destroy(UpstreamConnection& connection, bool in_good_order) noexcept;

  Address address_;
  Spinlock lock_;
  coir::detail::IntrusiveList<UpstreamConnection> resting_;  // guarded by lock_; the latest used first
  Atomic<std::uint32_t> waking_ = 0;                         // taken out while their wakes were about to run
};

}  // namespace coir::http
