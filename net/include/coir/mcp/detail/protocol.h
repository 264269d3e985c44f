#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// The words of the Model Context Protocol's revisions. Pure: nothing here does input or output or allocates.
namespace coir::mcp {

// Version is a revision of the protocol, the oldest first. 2026-07-28 keeps nothing between requests (the modern era);
// those before begin a session by `initialize` (the legacy era).
enum class Version : std::uint8_t { v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };
inline constexpr std::size_t kVersions = 4;
inline constexpr Version kNewestLegacy = Version::v2025_11_25;

enum class Era : std::uint8_t { legacy, modern };

// version_text is the name of a revision ("2026-07-28"), find_version the revision of that name.
std::string_view version_text(Version version) noexcept;
std::optional<Version> find_version(std::string_view text) noexcept;
constexpr Era era_of(Version version) noexcept {
  return version >= Version::v2026_07_28 ? Era::modern : Era::legacy;
}

// The codes of errors.
inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kResourceNotFound = -32002;  // legacy
inline constexpr int kHeaderMismatch = -32020;    // modern, as are the next two
inline constexpr int kMissingCapability = -32021;
inline constexpr int kUnsupportedVersion = -32022;
// coir's own, outside of what JSON-RPC and the protocol reserve.
inline constexpr int kBusy = -31000;       // a ceiling is reached: try again later
inline constexpr int kTimedOut = -31001;   // the call's deadline has passed
inline constexpr int kCancelled = -31002;  // the call was cancelled
inline constexpr int kTooLarge = -31003;   // a result is larger than this server allows
inline constexpr int kUpstream = -31004;   // a mounted server does not answer as it should

// Keys of _meta.
inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kClientInfoKey = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";
inline constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";

// Fields of requests and responses.
inline constexpr std::string_view kVersionField = "MCP-Protocol-Version";
inline constexpr std::string_view kMethodField = "Mcp-Method";
inline constexpr std::string_view kNameField = "Mcp-Name";
inline constexpr std::string_view kParameterFieldPrefix = "Mcp-Param-";
inline constexpr std::string_view kSessionField = "Mcp-Session-Id";

// LogLevel is how grave a message is, the least grave first (RFC 5424).
enum class LogLevel : std::uint8_t { debug, info, notice, warning, error, critical, alert, emergency };
std::string_view log_level_text(LogLevel level) noexcept;
std::optional<LogLevel> find_log_level(std::string_view text) noexcept;

// Capability is what a client can be asked for.
enum class Capability : std::uint8_t { sampling, elicitation, roots };
inline constexpr std::size_t kCapabilities = 3;
std::string_view capability_text(Capability capability) noexcept;

// CapabilitySet is a set of them, a bit for each.
using CapabilitySet = std::uint8_t;
constexpr CapabilitySet capability_set(Capability capability) noexcept {
  return static_cast<CapabilitySet>(1u << static_cast<unsigned>(capability));
}

// Icon is a picture that a client may show for a tool, a resource, a prompt or the server.
struct Icon {
  std::string_view source;      // a URI, https: or data:
  std::string_view media_type;  // empty: as the source says
  std::string_view sizes;       // "48x48" or "any"; empty: not told
};

enum class Role : std::uint8_t { user, assistant };

}  // namespace coir::mcp
