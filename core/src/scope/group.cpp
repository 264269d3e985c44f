#include <coir/group.h>

namespace coir {

std::expected<void, Error> Group::accepts() const noexcept {
  if (joining_.load(std::memory_order_relaxed)) return std::unexpected(Error(ErrorCode::closed));
  if (base_.cancelled()) return std::unexpected(Error(ErrorCode::cancelled));
  return {};
}

std::expected<void, Error> Group::join(Deadline deadline) noexcept {
  if (joining_.exchange(true, std::memory_order_relaxed)) return std::unexpected(Error(ErrorCode::stale));
  if (deadline.is_never()) return base_.leave();
  CancelScope scope(deadline);
  std::expected<void, Error> outcome = base_.leave();
  if (!outcome && scope.caused(outcome.error())) outcome.error().scope = 0;
  return outcome;
}

}  // namespace coir
