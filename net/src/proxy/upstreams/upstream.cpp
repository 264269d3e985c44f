#include "proxy/upstreams/upstream.h"

#include <coir/fiber.h>
#include <errno.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace coir::http {
namespace {

// half_of leaves half of what is left until the deadline, but `least` at the least.
Deadline half_of(Deadline deadline, std::chrono::nanoseconds least) noexcept {
  const std::chrono::nanoseconds half((deadline.ns() - monotonic_ns()) / 2);
  return std::min(deadline, Deadline::after(std::max(half, least)));
}

}  // namespace

UpstreamGroup::~UpstreamGroup() {
  detach();
  const bool runs = current().id() != 0;
  if (runs) stopping();
  for (UpstreamMember& member : members_) {
    if (runs && member.asker.started()) static_cast<void>(member.asker.cancel("the upstreams are gone"));
  }
  // acquire pairs with the release in ask_beside and watch.
  while (runs && asking_.load(std::memory_order_acquire) != 0) yield();
  std::destroy(members_.begin(), members_.end());
}

// A server that stops does not stay with the group: another may follow, whose exchanges attach.
void UpstreamGroup::note_server(Exchange& exchange) noexcept {
  const auto attached = attach(exchange);
  if (attached && closing_.load(std::memory_order_relaxed)) [[unlikely]]
    reopen();
  if (!attached && engine() == nullptr) closing_.store(true, std::memory_order_relaxed);
}

// The exchange acquires what stopping releases: if that has come meanwhile, the server is seen to stop.
[[gnu::noinline]] void UpstreamGroup::reopen() noexcept {
  static_cast<void>(closing_.exchange(false, std::memory_order_acq_rel));
  if (server_stops()) return stopping();
  if (watched_.load(std::memory_order_relaxed)) static_cast<void>(watch());
}

void UpstreamGroup::stopping() noexcept {
  closing_.store(true, std::memory_order_release);
  // The pools' locks order this behind the store: see rest.
  for (UpstreamMember& member : members_) member.close_resting(SIZE_MAX, true);
  FiberRef watcher;
  {
    const Locked locked(lock_);
    if (watching_.load(std::memory_order_relaxed)) watcher = watcher_;
  }
  static_cast<void>(watcher.cancel("the upstreams are not watched any more"));
}

// rest has a connection rest, unless the server has stopped. Either this sees so, or stopping finds the connection.
void UpstreamGroup::rest(UpstreamMember& member, PooledConnection& connection) noexcept {
  member.rest(connection);
  if (closing_.load(std::memory_order_relaxed)) member.close_resting(SIZE_MAX, true);
}

std::expected<UpstreamLease, Error> UpstreamGroup::take(const UpstreamChoice& choice, Deadline deadline) noexcept {
  Error failure{ErrorCode::limit};
  for (std::uint32_t tried = 0;;) {
    const auto reserved = reserve(choice, tried, deadline);
    if (!reserved) return std::unexpected(reserved.error() == ErrorCode::limit ? failure : reserved.error());
    UpstreamMember* const member = *reserved;
    bool last = true, is_stale = false;
    std::uint8_t era;
    {
      const Locked locked(lock_);
      tried |= 1u << (member - members_.data());
      for (std::size_t i = 0; last && i < members_.size(); ++i) last = !may_be_asked(i, tried);
      era = member->era;
      is_stale = member->looked_up && member->known.size() != 0 && member->look_again.passed();
    }
    if (is_stale) static_cast<void>(look_up(*member, deadline));
    PooledConnection* const resting = choice.must_be_new ? nullptr : member->take();
    // The kernel accepts for a server that is frozen. Its handshake, or its name, leaves time for the next server; both may
    // take longer than a connection.
    const std::expected<PooledConnection*, UpstreamReason> made =
        resting != nullptr ? resting
        : last             ? connect(*member, deadline, Dialler::kUnlimited)
                           : connect(*member, half_of(deadline, options_.connect), options_.connect);
    if (made) {
      (*made)->era = era;
      return UpstreamLease(**made);
    }
    failure = made.error().error;
    const bool is_its_own = !failure.ends_waits() && failure != ErrorCode::no_memory && failure != ErrorCode::limit &&
                            failure.sys != EADDRNOTAVAIL;  // no port is left on this side
    // Before the end, which would hand the room of a server to skip to the next in line.
    if (is_its_own) note_failure(*member, era, made.error(), failure == ErrorCode::timed_out);
    end(*member);
    if (!is_its_own || deadline.passed()) return std::unexpected(failure);
  }
}

std::expected<PooledConnection*, UpstreamReason> UpstreamGroup::connect(UpstreamMember& member, Deadline deadline,
                                                                        std::chrono::nanoseconds connect) noexcept {
  auto made = member.make();
  if (!made) return std::unexpected(UpstreamReason{.error = ErrorCode::limit});
  Dialler dialler{(*made)->stream, {.connect = connect, .last = deadline}};
  if (auto dialled = dial(member, dialler); !dialled) {
    ConnectionPool::close(**made, true);
    return std::unexpected(UpstreamReason{.step = dialler.step, .error = dialled.error()});
  }
  return *made;
}

[[gnu::noinline]] std::expected<void, Error> UpstreamGroup::dial(UpstreamMember& member, Dialler& dialler) noexcept {
  if (!member.looked_up) return dialler.connect(member.address);
  if (auto looked = look_up(member, dialler.times.last); !looked) return looked;
  Addresses at;
  {
    const Locked locked(lock_);
    at = member.known;
  }
  auto made = dialler.connect(at);
  return made && member.secure ? dialler.begin_tls(*options_.tls, member.host) : made;
}

void UpstreamLease::answered(std::int64_t sent_ns) const noexcept {
  server().latency.record(monotonic_ns() - sent_ns);
}

void UpstreamLease::give_back(bool reusable) noexcept {
  if (connection_ == nullptr) return;
  UpstreamMember& member = server();
  member.group.note_success(member, connection_->era);
  // The connection rests first: the exchange that end hands the room to takes it, and opens none.
  if (!reusable) return leave();
  member.group.rest(member, *std::exchange(connection_, nullptr));
  member.group.end(member);
}

void UpstreamLease::leave() noexcept {
  close(true);
}

// close ends the connection before the lease: the exchange that gets its room may open one more.
void UpstreamLease::close(bool in_good_order) noexcept {
  if (connection_ == nullptr) return;
  UpstreamMember& member = server();
  ConnectionPool::close(*std::exchange(connection_, nullptr), in_good_order);
  member.group.end(member);
}

void UpstreamLease::failed(UpstreamFault fault) noexcept {
  if (connection_ == nullptr) return;
  UpstreamMember& member = server();
  switch (fault) {
    case UpstreamFault::stale:
      member.close_resting(SIZE_MAX, true);
      break;
    case UpstreamFault::cut:
      member.group.note_failure(member, connection_->era, {.kind = UpstreamReason::Kind::cut});
      break;
    case UpstreamFault::malformed:
      member.group.note_failure(member, connection_->era, {.kind = UpstreamReason::Kind::malformed});
      break;
    case UpstreamFault::timed_out:
      member.group.note_failure(member, connection_->era, {.error = ErrorCode::timed_out});
      break;
    case UpstreamFault::broken_off:
      member.group.count(member, &UpstreamServerState::cut);
      break;
    case UpstreamFault::oversized:
      member.group.count(member, &UpstreamServerState::oversized);
      break;
  }
  close(false);
}

UpstreamMember& UpstreamLease::server() const noexcept {
  return static_cast<UpstreamMember&>(*connection_->pool);
}

}  // namespace coir::http
