// How the servers of a group are looked after, on a fiber of the group's. Declared in proxy/upstreams/upstream.h.
#include <coir/format.h>
#include <coir/nursery.h>
#include <coir/stack_size.h>

#include <algorithm>
#include <bit>

#include "base/randomness.h"
#include "outbound/exchange.h"
#include "outbound/fault.h"
#include "proxy/upstreams/upstream.h"

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kStack = 16_KiB;  // a name may be looked up

std::unexpected<UpstreamReason> because(Error error) noexcept {
  return std::unexpected(UpstreamReason{.error = error});
}

// is_of_this_side tells whether an error says nothing of the server.
bool is_of_this_side(const UpstreamReason& reason) noexcept {
  if (reason.kind != UpstreamReason::Kind::error) return false;
  const Error error = reason.error;
  return error.ends_waits() || error == ErrorCode::no_memory || error == ErrorCode::limit;
}

// spread is a span of time, a tenth more or less, so that many that watch a server do not ask it together.
std::chrono::nanoseconds spread(std::chrono::nanoseconds span) noexcept {
  char bytes[sizeof(std::uint32_t)];
  fill_with_randomness(bytes);
  const std::int64_t fifth = span.count() / 5;
  return span - std::chrono::nanoseconds(fifth / 2 - fifth * (std::bit_cast<std::uint32_t>(bytes) >> 16) / 0x10000);
}

// Question is a request that asks a server whether it is well. A head that is too long for its room is none: who wants to
// be asked answers shortly.
struct Question final : OutboundExchange {
  explicit Question(Stream& over) noexcept : OutboundExchange(3 * 1024) { goes_over(over); }
};

std::string_view text_of_silence(Dialler::Step step) noexcept {
  switch (step) {
    case Dialler::Step::resolve:
      return "its name was not found in time";
    case Dialler::Step::connect:
      return "it did not accept a connection in time";
    case Dialler::Step::tls:
      return "its TLS handshake took too long";
    case Dialler::Step::send:
    case Dialler::Step::first_byte:
      break;
  }
  return "it did not answer in time";
}

std::string_view text_of(const UpstreamReason& reason, std::span<char> room) noexcept {
  switch (reason.kind) {
    case UpstreamReason::Kind::cut:
      return "it hung up before its response was whole";
    case UpstreamReason::Kind::malformed:
      return "its response is none";
    case UpstreamReason::Kind::oversized:
      return "the head of its response is too long";
    case UpstreamReason::Kind::status:
      return format(room, "its check was answered ", reason.status);
    case UpstreamReason::Kind::error:
      break;
  }
  return reason.error == ErrorCode::timed_out ? text_of_silence(reason.step) : describe(reason.error);
}

}  // namespace

std::expected<void, Error> UpstreamGroup::watch() noexcept {
  watched_.store(true, std::memory_order_relaxed);
  if (closing_.load(std::memory_order_relaxed) || watching_.exchange(true, std::memory_order_relaxed)) return {};
  asking_.fetch_add(1, std::memory_order_relaxed);
  Fiber watcher = spawn({.name = "upstreams", .stack = kStack, .detached = true}, [this] {
    look_after();
    watching_.store(false, std::memory_order_relaxed);
    asking_.fetch_sub(1, std::memory_order_release);
  });
  if (!watcher.started()) {
    watching_.store(false, std::memory_order_relaxed);
    asking_.fetch_sub(1, std::memory_order_relaxed);
    return std::unexpected(watcher.error());
  }
  {
    const Locked locked(lock_);
    watcher_ = std::move(watcher);
  }
  // The server may have stopped meanwhile.
  if (closing_.load(std::memory_order_relaxed)) stopping();
  return {};
}

void UpstreamGroup::look_after() noexcept {
  const UpstreamHealth& health = options_.health;
  std::chrono::nanoseconds pause = 1s;
  for (bool first = true;; first = false) {
    const std::int64_t began_ns = monotonic_ns();
    due_.reset();
    round(first);
    Deadline next = Deadline::never();
    if (!health.path.empty()) {
      next = Deadline::at_ns(began_ns + spread(health.interval).count());
    } else if (any_unreachable()) {
      next = Deadline::at_ns(began_ns + spread(pause).count());
      pause = std::min<std::chrono::nanoseconds>(pause * 2, options_.longest);
    } else {
      pause = 1s;
    }
    // A server's fall is no reason to begin a round early that is due anyway.
    const auto waited = next.is_never() ? due_.wait() : sleep_until(next);
    if (!waited) return;
  }
}

bool UpstreamGroup::any_unreachable() const noexcept {
  const Locked locked(lock_);
  return std::ranges::any_of(members_, [](const UpstreamMember& each) { return each.unreachable; });
}

// round asks every server that is to be asked, all at once, and returns when all have answered or are late.
void UpstreamGroup::round(bool first) noexcept {
  Nursery nursery;
  for (UpstreamMember& each : members_) {
    if (!first && options_.health.path.empty()) {
      const Locked locked(lock_);
      if (!each.unreachable) continue;
    }
    const Error why =
        members_.size() == 1
            ? Error(ErrorCode::limit)
            : nursery.start({.name = "upstream check", .stack = kStack}, [&] { check(each, first); }).error();
    // By itself, where there is but one, or no stack for another fiber.
    if (why.code != ErrorCode{}) check(each, first);
  }
  static_cast<void>(nursery.join());
}

void UpstreamGroup::check(UpstreamMember& member, bool first) noexcept {
  const auto asked = ask(member);
  if (!asked && is_of_this_side(asked.error())) return;
  const UpstreamHealth& health = options_.health;
  const bool by_path = !health.path.empty();
  {
    const Locked locked(lock_);
    if (asked) {
      member.failed_checks = 0;
      ++member.good_checks;
      if (by_path && member.failing && member.good_checks < health.successes) return;
      if (member.failing || member.unreachable) come_back(member);
    } else {
      member.good_checks = 0;
      ++member.failed_checks;
      ++member.tally.failed_checks;
      if (by_path && !first && member.failed_checks < health.failures) return;
      member.failing = by_path;
      member.unreachable = !by_path;
      go_down(member, asked.error());
    }
  }
  // If the last server that was well has failed, those that have hung up may be asked.
  serve_line();
  tell(member);
}

std::expected<void, UpstreamReason> UpstreamGroup::ask(UpstreamMember& member) noexcept {
  const Deadline deadline = Deadline::after(options_.health.timeout);
  const auto made = connect(member, deadline, Dialler::kUnlimited);
  if (!made) return std::unexpected(made.error());
  std::expected<void, UpstreamReason> asked;
  if (!options_.health.path.empty()) asked = converse(member, (*made)->stream, deadline);
  ConnectionPool::close(**made, true);
  return asked;
}

std::expected<void, UpstreamReason> UpstreamGroup::converse(UpstreamMember& member, Stream& stream,
                                                            Deadline deadline) noexcept {
  Question question(stream);
  if (auto taken = question.grow(0); !taken) return because(taken.error());
  std::string_view host = options_.health.host;
  Formatter request(question.room);
  request.add("GET ", options_.health.path, " HTTP/1.1\r\nHost: ");
  if (host.empty() && member.host[0] != '\0') {
    const bool bare = std::string_view(member.host).find(':') != std::string_view::npos;
    request.add(bare ? "[" : "", static_cast<const char*>(member.host), bare ? "]" : "");
    if (member.port != (member.secure ? 443 : 80)) request.add(":", member.port);
  } else {
    request.add(host.empty() ? "localhost" : host);
  }
  request.add("\r\nUser-Agent: coir\r\nAccept: */*\r\nConnection: close\r\n\r\n");
  if (!request.fits()) return because(ErrorCode::limit);
  auto asked = question.send_beginning(request.text(), {}, {options_.health.timeout, deadline});
  if (asked) asked = question.read_head(deadline);
  const std::uint16_t status = question.response.status;
  if (asked && status < 400) return {};
  if (asked) return std::unexpected(UpstreamReason{.kind = UpstreamReason::Kind::status, .status = status});
  const Error error = asked.error();
  if (is_hang_up(error)) return std::unexpected(UpstreamReason{.kind = UpstreamReason::Kind::cut});
  if (error == ErrorCode::protocol) return std::unexpected(UpstreamReason{.kind = UpstreamReason::Kind::malformed});
  if (error == ErrorCode::limit) return std::unexpected(UpstreamReason{.kind = UpstreamReason::Kind::oversized});
  return because(error);
}

// tell has on_change hear what it has not heard yet, one call after the other for each server.
void UpstreamGroup::tell(UpstreamMember& member) noexcept {
  if (!options_.on_change) return;
  for (;;) {
    UpstreamReason reason;
    bool down;
    {
      const Locked locked(lock_);
      if (member.telling || member.told_down == member.down) return;
      member.telling = true;
      member.told_down = down = member.down;
      reason = member.reason;
    }
    char name[Upstreams::kMostName], why[48];
    options_.on_change(
        {.server = name_of(member, name), .up = !down, .why = down ? text_of(reason, why) : std::string_view()});
    const Locked locked(lock_);
    member.telling = false;
  }
}

std::string_view UpstreamGroup::name_of(const UpstreamMember& member, std::span<char> room) noexcept {
  if (!member.looked_up) return member.address.format(room);
  const bool bare = std::string_view(member.host).find(':') != std::string_view::npos;
  return format(room, member.secure ? "https://" : "http://", bare ? "[" : "", static_cast<const char*>(member.host),
                bare ? "]" : "", ":", member.port);
}

}  // namespace coir::http
