#pragma once

// A process of root gives up what root may do.
//
//   if (const int error = keep_capabilities(capability(CAP_NET_BIND_SERVICE))) return complain(Error::from_errno(error));

#include <cstdint>

namespace coir::port {

// capability is the set of one of the CAP_... of linux/capability.h.
constexpr std::uint64_t capability(int which) noexcept {
  return std::uint64_t{1} << which;
}

// keep_capabilities leaves the calling thread, and each thread and process that it starts from now on, of its capabilities
// those in `kept`, for good: also a program that is started as root. A process that may not limit its programs
// (CAP_SETPCAP) keeps the limit that it has. Call it before other threads start. Returns 0, or the errno of a kernel that
// cannot.
int keep_capabilities(std::uint64_t kept) noexcept;

}  // namespace coir::port
