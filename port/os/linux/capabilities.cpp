#include <coir/port/capabilities.h>

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace coir::port {

int keep_capabilities(std::uint64_t kept) noexcept {
  // The bounding set, of which root's programs get all. A kernel answers an error behind its last capability.
  for (int each = 0; each < 64; ++each) {
    const int has = prctl(PR_CAPBSET_READ, each, 0, 0, 0);
    if (has < 0) break;
    if (has == 1 && (kept & capability(each)) == 0) static_cast<void>(prctl(PR_CAPBSET_DROP, each, 0, 0, 0));
  }
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, halves) != 0) return errno;
  std::uint32_t more = 0;
  for (__user_cap_data_struct& half : halves) {
    const auto bits = static_cast<std::uint32_t>(kept);
    more |= (half.permitted | half.inheritable) & ~bits;
    half = {.effective = half.effective & bits, .permitted = half.permitted & bits, .inheritable = 0};
    kept >>= 32;
  }
  // A container may refuse the call where there is nothing to give up.
  return more == 0 || syscall(SYS_capset, &header, halves) == 0 ? 0 : errno;
}

}  // namespace coir::port
