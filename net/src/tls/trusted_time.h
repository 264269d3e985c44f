#pragma once

#include <cstdint>

namespace coir::tls {

// TrustedTime is what certificates are judged by. A board without a clock starts in 1970: until its clock is set, the
// time is taken to be the latest that is certain to have passed: that of the build or one that was seen before, and
// what the monotonic clock has counted since the process learnt it. So tickets' keys rotate without a clock too.
struct TrustedTime {
  std::int64_t seconds;  // since 1970
  bool valid;            // the clock's own, rather than a floor
};
TrustedTime trusted_time() noexcept;

}  // namespace coir::tls
