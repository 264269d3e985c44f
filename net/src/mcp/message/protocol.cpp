#include <coir/mcp/detail/protocol.h>

#include <iterator>

namespace coir::mcp {
namespace {

constexpr std::string_view kVersionTexts[kVersions] = {"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};
constexpr std::string_view kLevels[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};
constexpr std::string_view kCapabilityTexts[kCapabilities] = {"sampling", "elicitation", "roots"};

}  // namespace

std::string_view version_text(Version version) noexcept {
  return kVersionTexts[static_cast<std::size_t>(version)];
}

std::optional<Version> find_version(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kVersions; ++i) {
    if (text == kVersionTexts[i]) return static_cast<Version>(i);
  }
  return std::nullopt;
}

std::string_view log_level_text(LogLevel level) noexcept {
  return kLevels[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> find_log_level(std::string_view text) noexcept {
  for (std::size_t i = 0; i < std::size(kLevels); ++i) {
    if (text == kLevels[i]) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::string_view capability_text(Capability capability) noexcept {
  return kCapabilityTexts[static_cast<std::size_t>(capability)];
}

}  // namespace coir::mcp
