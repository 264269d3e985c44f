#include "proxy/upstream.h"

#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/http/accounts.h>
#include <coir/http/server.h>
#include <coir/net/connect.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "outbound/resting.h"
#include "socket/charged.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kConnectionBytes = sizeof(UpstreamConnection) + kKernelBytesPerConnection;
// A name is looked up once a second at most, and again after this time where that failed.
constexpr std::chrono::nanoseconds kLeastBetweenLookups = 1s, kAfterFailedLookup = 5s;

std::uint32_t monotonic_s() noexcept {
  return static_cast<std::uint32_t>(monotonic_ns() / 1'000'000'000);
}

bool same(const Addresses& one, const Addresses& other) noexcept {
  if (one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Address left = one[i];
    bool found = false;
    for (std::size_t k = 0; k < other.size() && !found; ++k) {
      const Address right = other[k];
      found = left.length() == right.length() && memcmp(left.get(), right.get(), left.length()) == 0;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

UpstreamGroup::~UpstreamGroup() {
  if (watcher_.started() && current().id() != 0) {
    static_cast<void>(watcher_.cancel("the upstreams are not watched any more"));
    const Shield to_the_end(Deadline::never());
    static_cast<void>(watcher_.join());
  }
  Pressure::remove(relief_);
  for (UpstreamMember& member : members_) close_resting(member);
  // Behind the end of the run no wake runs any more. acquire pairs with the release in woken, behind which nothing of the
  // group is touched.
  const bool runs = current().id() != 0;
  while (runs && waking_.load(std::memory_order_acquire) != 0) yield();
}

// take_out takes a connection out of its pool, under lock_. Null: its wake is about to run, and closes it.
UpstreamConnection* UpstreamGroup::take_out(UpstreamConnection& connection) noexcept {
  connection.member->resting.remove(connection);
  --connection.member->resting_count;
  connection.rests = false;
  if (disarm_resting_wait(connection) || current().id() == 0) return &connection;
  waking_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

UpstreamConnection* UpstreamGroup::take_resting(UpstreamMember& member) noexcept {
  while (UpstreamConnection* const first = member.resting.front()) {
    if (UpstreamConnection* const found = take_out(*first)) return found;
  }
  return nullptr;
}

// is_usable looks at a connection that was taken out: its end may have come while its wake was still to run.
bool UpstreamGroup::is_usable(UpstreamConnection& connection) noexcept {
  return monotonic_s() < connection.until_s && is_quiet(connection.stream);
}

void UpstreamGroup::close_resting(UpstreamMember& member) noexcept {
  for (;;) {
    UpstreamConnection* found;
    {
      const Locked locked(lock_);
      found = take_resting(member);
    }
    if (found == nullptr) return;
    destroy(*found, true);
  }
}

std::expected<UpstreamLease, Error> UpstreamGroup::take(const UpstreamChoice& choice, Deadline deadline) noexcept {
  Error failure{ErrorCode::limit};
  for (std::uint32_t tried = 0;;) {
    UpstreamMember* member;
    UpstreamConnection* found = nullptr;
    bool last = true;
    {
      const Locked locked(lock_);
      member = choose(choice, tried);
      if (member == nullptr) {
        unavailable_ += tried == 0;
        return std::unexpected(failure);
      }
      tried |= 1u << (member - members_.data());
      for (std::size_t i = 0; last && i < members_.size(); ++i) last = !may_be_asked(i, tried);
      ++member->in_use;
      ++member->tally.requests;
      // A name whose time is over is looked up before its connections are used.
      if (!choice.must_be_new && (!member->looked_up || !member->look_again.passed())) found = take_resting(*member);
      if (found != nullptr) found->era = member->era;
    }
    while (found != nullptr && !is_usable(*found)) {
      destroy(*std::exchange(found, nullptr), true);
      const Locked locked(lock_);
      found = take_resting(*member);
      if (found != nullptr) found->era = member->era;
    }
    if (found != nullptr) {
      found->reused = true;
      return UpstreamLease(*found);
    }
    const auto made = connect(*member, deadline, last ? deadline : Deadline::after(options_.connect));
    if (made) return UpstreamLease(**made);
    end(*member);
    failure = made.error();
    // What is wrong here is no fault of the server's.
    if (failure == ErrorCode::cancelled || failure == ErrorCode::no_memory || failure == ErrorCode::limit ||
        (failure == ErrorCode::timed_out && failure.scope != 0)) {
      return std::unexpected(failure);
    }
    note_failure(*member, {.error = failure}, failure == ErrorCode::timed_out);
    if (deadline.passed()) return std::unexpected(failure);
  }
}

// look_up asks for a member's name where its answer's time is over. One fiber does; others go on by what is known.
std::expected<void, Error> UpstreamGroup::look_up(UpstreamMember& member, Deadline deadline) noexcept {
  {
    const Locked locked(lock_);
    if (!member.look_again.passed() || (member.looking && member.known.size() != 0)) return {};
    member.looking = true;
  }
  const auto found = resolve(member.host, member.port, deadline);
  bool changed = false;
  {
    const Locked locked(lock_);
    member.looking = false;
    if (found) {
      changed = !same(*found, member.known);
      member.known = *found;
      member.look_again = std::max(found->valid_until(), Deadline::after(kLeastBetweenLookups));
    } else if (member.known.size() != 0) {
      member.look_again = Deadline::after(kAfterFailedLookup);
    } else {
      return std::unexpected(found.error());
    }
  }
  if (changed) close_resting(member);
  return {};
}

std::expected<UpstreamConnection*, Error> UpstreamGroup::connect(UpstreamMember& member, Deadline deadline,
                                                                 Deadline connected) noexcept {
  void* const memory = take_charged(account::connections, sizeof(UpstreamConnection), kKernelBytesPerConnection);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::limit});
  auto* const connection = ::new (memory) UpstreamConnection;
  connection->group = this;
  connection->member = &member;
  connection->rest_s = static_cast<std::uint8_t>(std::clamp<std::int64_t>(options_.idle_time.count(), 0, 255));
  auto dialled = dial(member, deadline, connected);
  if (!dialled) {
    destroy(*connection, true);
    return std::unexpected(dialled.error());
  }
  connection->stream = std::move(*dialled);
  const Locked locked(lock_);
  connection->era = member.era;
  return connection;
}

[[gnu::noinline]] std::expected<Stream, Error> UpstreamGroup::dial(UpstreamMember& member, Deadline deadline,
                                                                   Deadline connected) noexcept {
  if (!member.looked_up) {
    auto tcp = TcpStream::connect(member.address, std::min(deadline, connected));
    if (!tcp) return std::unexpected(tcp.error());
    return Stream(std::move(*tcp));
  }
  if (auto looked = look_up(member, deadline); !looked) return std::unexpected(looked.error());
  Addresses at;
  {
    const Locked locked(lock_);
    at = member.known;
  }
  auto tcp = coir::connect(at, std::min(deadline, connected));
  if (!tcp) return std::unexpected(tcp.error());
  Stream stream(std::move(*tcp));
  if constexpr (kTls) {
    if (member.secure) {
      if (auto begun = stream.begin_tls(*options_.tls, member.host, deadline); !begun) {
        return std::unexpected(begun.error());
      }
      if (auto shaken = stream.handshake(); !shaken) return std::unexpected(shaken.error());
    }
  }
  return stream;
}

void UpstreamGroup::rest(UpstreamConnection& connection) noexcept {
  connection.stream.rest();
  connection.wake = woken;
  connection.until_s = monotonic_s() + connection.rest_s;
  const int fd = connection.stream.fd();
  // The edge of what has been read already may be known still, and there are two at most.
  for (int edges = 0; edges < 4 && connection.rest_s != 0 && connection.stream.drained(); ++edges) {
    const Rested rested = try_to_rest(connection, fd);
    if (rested == Rested::yes) return;
    if (rested == Rested::no || kernel::peek(fd) != -EAGAIN) break;
  }
  destroy(connection, true);
}

UpstreamGroup::Rested UpstreamGroup::try_to_rest(UpstreamConnection& connection, int fd) noexcept {
  UpstreamMember& member = *connection.member;
  ArmingUnderLock arming(fd);
  const Locked locked(lock_);
  if (member.resting_count >= options_.most_resting) return Rested::no;
  if (const auto armed = arming.arm(connection); !armed)
    return armed.error() == ErrorCode::busy ? Rested::has_edge : Rested::no;
  connection.rests = true;
  member.resting.push_front(connection);
  ++member.resting_count;
  return Rested::yes;
}

// woken runs on a worker's own stack: what has come is an end, or an answer to nothing.
void UpstreamGroup::woken(RestingWait& resting) noexcept {
  auto& connection = static_cast<UpstreamConnection&>(resting);
  UpstreamGroup& self = *connection.group;
  bool taken_out;
  {
    const Locked locked(self.lock_);
    taken_out = !std::exchange(connection.rests, false);
    if (!taken_out) {
      connection.member->resting.remove(connection);
      --connection.member->resting_count;
    }
  }
  destroy(connection, true);
  // release pairs with the acquire in the destructor.
  if (taken_out) self.waking_.fetch_sub(1, std::memory_order_release);
}

void UpstreamGroup::destroy(UpstreamConnection& connection, bool in_good_order) noexcept {
  if (!in_good_order) connection.stream.abandon();
  connection.~UpstreamConnection();
  give_charged(account::connections, &connection, kConnectionBytes);
}

void UpstreamLease::hear_keep_alive(const ParsedResponse& response) noexcept {
  const auto span = rest_time(response, std::chrono::seconds(connection_->rest_s));
  connection_->rest_s = static_cast<std::uint8_t>(std::max<std::int64_t>(span.count() / 1000, 0));
}

void UpstreamLease::give_back(bool reusable) noexcept {
  if (connection_ == nullptr) return;
  UpstreamConnection& connection = *std::exchange(connection_, nullptr);
  UpstreamGroup& group = *connection.group;
  group.note_success(*connection.member, connection.era);
  group.end(*connection.member);
  if (reusable) return group.rest(connection);
  UpstreamGroup::destroy(connection, true);
}

void UpstreamLease::leave() noexcept {
  if (connection_ == nullptr) return;
  UpstreamConnection& connection = *std::exchange(connection_, nullptr);
  connection.group->end(*connection.member);
  UpstreamGroup::destroy(connection, true);
}

void UpstreamLease::failed(UpstreamFault fault) noexcept {
  if (connection_ == nullptr) return;
  UpstreamConnection& connection = *std::exchange(connection_, nullptr);
  UpstreamGroup& group = *connection.group;
  using enum UpstreamReason::Kind;
  if (fault == UpstreamFault::cut) group.note_failure(*connection.member, {.kind = cut});
  if (fault == UpstreamFault::malformed) group.note_failure(*connection.member, {.kind = malformed});
  if (fault == UpstreamFault::timed_out) group.note_failure(*connection.member, {.error = ErrorCode::timed_out});
  group.end(*connection.member);
  UpstreamGroup::destroy(connection, false);
}

}  // namespace coir::http
