#include "http/session/sound_options.h"

#include "http/session/session.h"

namespace coir::http {

std::expected<ServerOptions, Error> sound_options(const ServerOptions& options) noexcept {
  constexpr std::size_t kMost = 1'000'000;
  const bool sound = options.handler && options.max_connections > 0 && options.max_connections <= kMost &&
                     options.max_active > 0 && options.max_active <= kMost && options.max_handshakes > 0 &&
                     options.max_requests_per_client <= kMost && options.handler_stack > 0 &&
                     options.handler_stack <= 64_KiB && options.limits.max_head_bytes <= Session::kMaxHeadBytes &&
                     options.limits.max_target < SessionBuffers::kScratchBytes;
  if (!sound) return std::unexpected(Error{ErrorCode::invalid});
  ServerOptions kept = options;
  // A time that no process sees the end of, and that nanoseconds since the boot can be added to.
  if (kept.idle_timeout == std::chrono::milliseconds(0)) kept.idle_timeout = std::chrono::hours(24 * 365 * 100);
  return kept;
}

}  // namespace coir::http
