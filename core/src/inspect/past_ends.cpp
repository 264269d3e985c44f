// PastEnds, of coir/end_record.h.
#include <coir/end_record.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "inspect/end_text.h"

namespace coir {

PastEnds::~PastEnds() {
  if (fd_ >= 0) ::close(fd_);
}

std::expected<void, Error> PastEnds::open(const char* folder, const EndRecordOptions& options) noexcept {
  options_ = options;
  char path[256];
  if (Formatter name(path); !name.add(folder, "/crashes", '\0').fits())
    return std::unexpected(Error{ErrorCode::invalid});
  // Another user may write there: no link, and no pipe that would be waited for.
  fd_ = ::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) return std::unexpected(Error::from_errno(errno));
  const bool free = ::flock(fd_, LOCK_SH | LOCK_NB) == 0;
  without_locks_ = !free && errno == ENOSYS;
  running_ = !free && !without_locks_;
  // A program that starts now must not find it taken.
  if (free) ::flock(fd_, LOCK_UN);
  return {};
}

bool PastEnds::read(std::span<char, EndRecord::kSlotBytes> room, PastEnd& record) noexcept {
  const bool newest = below_ == UINT64_MAX;
  std::size_t best = EndRecord::kSlots;
  std::uint64_t number = 0;
  const auto read_one = [&](std::size_t slot) noexcept { return read_slot_of(fd_, slot, room, record); };
  for (std::size_t i = 0; i < EndRecord::kSlots; ++i) {
    const SlotState state = read_one(i);
    if (newest && state == SlotState::damaged) ++damaged_;
    if (state != SlotState::whole || record.number >= below_ || record.number <= number) continue;
    number = record.number;
    best = i;
  }
  if (best == EndRecord::kSlots || read_one(best) != SlotState::whole) return false;
  below_ = record.number;
  // The newest without an end runs, unless nobody holds its lock: then the next start would judge so.
  if (newest && without_locks_) running_ = Since(options_).lives(record);
  if (record.end == End::none && !(newest && running_)) record.end = Since(options_).judge(record);
  return true;
}

}  // namespace coir
