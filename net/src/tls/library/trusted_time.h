#pragma once

#include <cstdint>

namespace coir::tls {

// TrustedTime is the time by which certificates are judged. A board without a clock starts in 1970. Until its clock is
// set, the time is a floor: the build's time or one seen before, plus the monotonic time since the process learnt it.
// So tickets' keys rotate without a clock too.
struct TrustedTime {
  std::int64_t seconds;  // since 1970
  bool valid;            // the clock's own, rather than a floor
};
TrustedTime trusted_time() noexcept;

}  // namespace coir::tls
