#include <coir/port/barrier.h>
#include <coir/port/spinning.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coir::port {

bool prepare_barrier() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool barrier_everywhere() noexcept {
  expect_no_spinlock("membarrier");
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace coir::port
