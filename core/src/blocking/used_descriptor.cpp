#include <coir/detail/used_descriptor.h>
#include <coir/wait.h>
#include <sys/socket.h>

namespace coir::detail {

void UsedDescriptor::close_unused() noexcept {
  close_fd(fd_);
}

void UsedDescriptor::shut_down(int fd) noexcept {
  ::shutdown(fd, SHUT_RDWR);
}

bool UsedDescriptor::close(void (*wake)(int fd) noexcept) noexcept {
  std::uint16_t seen = state_.load(std::memory_order_relaxed);
  do {
    if ((seen & kClosed) != 0) return false;
    // Counted as one who uses it, so that the number stays taken until they have been woken.
  } while (!state_.compare_exchange_weak(seen, static_cast<std::uint16_t>((seen | kClosed) + 1),
                                         std::memory_order_acq_rel, std::memory_order_relaxed));
  if (seen != 0) wake(fd_);
  leave();
  return true;
}

int UsedDescriptor::release() noexcept {
  const int fd = number();
  state_.store(kClosed, std::memory_order_relaxed);
  return fd;
}

UsedDescriptor& UsedDescriptor::operator=(UsedDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
    state_.store(fd_ < 0 ? kClosed : std::uint16_t{0}, std::memory_order_relaxed);
  }
  return *this;
}

}  // namespace coir::detail
