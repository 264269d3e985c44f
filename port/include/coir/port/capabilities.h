#pragma once

// A process of root gives up what root may do.
//
//   constexpr int kBind = 10;  // CAP_NET_BIND_SERVICE of linux/capability.h
//   if (const int error = keep_capabilities(capability(kBind))) return complain(Error::from_errno(error));

#include <cstdint>

namespace coir::port {

// capability is the set of one of the CAP_... of linux/capability.h.
constexpr std::uint64_t capability(int which) noexcept {
  return std::uint64_t{1} << which;
}

// keep_capabilities removes every capability that is not in `kept`, for good, from the calling thread and from all threads and
// processes that it starts, programs of root included. A process that may not limit its programs
// (CAP_SETPCAP) keeps the limit that it has. Call it before other threads start. Returns 0, or the errno of a kernel that
// cannot.
int keep_capabilities(std::uint64_t kept) noexcept;

}  // namespace coir::port
