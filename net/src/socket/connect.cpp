#include <coir/tcp.h>

#include <coir/wait.h>
#include <errno.h>

#include <algorithm>

#include "socket/attempt.h"

namespace coir {
namespace {

// RFC 8305, section 5: the "Connection Attempt Delay".
constexpr std::int64_t kHeadStartNs = 250'000'000;
static_assert(Addresses::kMost <= kMostAwaited);

// Race is the connections under way to the addresses of one host.
class Race {
 public:
  explicit Race(const Addresses& to) noexcept : to_(to) { put_in_turn(); }

  std::expected<TcpStream, Error> run(Deadline deadline) noexcept {
    for (;;) {
      if (begun_ < to_.size() && (under_way() == 0 || next_at_.passed())) {
        if (begin()) return std::move(streams_[begun_ - 1]);
        continue;
      }
      if (under_way() == 0) return std::unexpected(failure_);
      const Deadline until = begun_ < to_.size() ? std::min(deadline, next_at_) : deadline;
      if (auto ready = wait_several(std::span(awaited_, begun_), until); !ready) {
        const Error error = ready.error();
        // The head start is over, and nothing else.
        if (error.is_late() && !deadline.passed()) continue;
        return std::unexpected(error);
      }
      for (std::size_t i = 0; i < begun_; ++i) {
        if (awaited_[i].fd < 0) continue;
        const int outcome = connection_outcome(awaited_[i].fd);
        if (outcome == 0) return std::move(streams_[i]);
        if (outcome != -EINPROGRESS) fail(i, outcome);
      }
    }
  }

 private:
  // put_in_turn has the families alternate, each in the resolver's order.
  void put_in_turn() noexcept {
    std::size_t next[2] = {0, 0};  // of the first address's family, and of the other
    const auto is_first = [this](std::size_t at) { return to_[at].family() == to_[0].family(); };
    for (std::size_t i = 0; i < to_.size(); ++i) {
      for (int side = 0; side < 2; ++side) {
        while (next[side] < to_.size() && is_first(next[side]) != (side == 0)) ++next[side];
      }
      const bool odd = i % 2 != 0;
      const int side = next[odd] < to_.size() ? odd : !odd;
      order_[i] = static_cast<std::uint8_t>(next[side]++);
    }
  }

  // begin tries the next address. True: it is connected already.
  bool begin() noexcept {
    const std::size_t at = begun_++;
    const int outcome = begin_connection(to_[order_[at]], streams_[at]);
    if (outcome == 0) return true;
    next_at_ = Deadline::at_ns(monotonic_ns() + kHeadStartNs);
    awaited_[at] = {streams_[at].fd(), Direction::writable};
    if (outcome != -EINPROGRESS) fail(at, outcome);
    return false;
  }

  void fail(std::size_t at, int outcome) noexcept {
    awaited_[at].fd = -1;
    streams_[at].close();
    next_at_ = Deadline::now();
    if (failure_ == ErrorCode::not_found || outcome == -ECONNREFUSED) failure_ = Error::from_errno(-outcome);
  }

  std::size_t under_way() const noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < begun_; ++i) count += awaited_[i].fd >= 0;
    return count;
  }

  const Addresses& to_;
  std::uint8_t order_[Addresses::kMost];
  TcpStream streams_[Addresses::kMost];
  Awaited awaited_[Addresses::kMost];
  std::size_t begun_ = 0;
  Deadline next_at_ = Deadline::now();
  Error failure_{ErrorCode::not_found};
};

}  // namespace

std::expected<TcpStream, Error> connect(const Addresses& to, Deadline deadline) noexcept {
  return Race(to).run(deadline);
}

std::expected<TcpStream, Error> connect(std::string_view host, std::uint16_t port, Deadline deadline) noexcept {
  const auto found = resolve(host, port, deadline);
  if (!found) return std::unexpected(found.error());
  return connect(*found, deadline);
}

}  // namespace coir
