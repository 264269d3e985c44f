#include <coir/mqtt.h>

#include <algorithm>
#include <charconv>

namespace coir::mqtt {

std::expected<BrokerUrl, Error> parse_broker_url(std::string_view text) noexcept {
  const std::unexpected<Error> invalid(Error{ErrorCode::invalid});
  if (std::ranges::any_of(text, [](char c) { return c <= ' ' || c > '~' || c == '%'; })) return invalid;
  BrokerUrl url;
  const std::size_t scheme = text.find("://");
  if (scheme == text.npos) return invalid;
  url.secure = text.substr(0, scheme) == "mqtts";
  if (!url.secure && text.substr(0, scheme) != "mqtt") return std::unexpected(Error{ErrorCode::unsupported});
  if (url.secure) url.port = 8883;
  text.remove_prefix(scheme + 3);
  if (const std::size_t slash = text.find('/'); slash != text.npos) {
    url.path = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  if (const std::size_t at = text.rfind('@'); at != text.npos) {
    url.user = text.substr(0, at);
    if (url.user.contains(':')) return std::unexpected(Error{ErrorCode::untrusted});
    if (url.user.empty()) return invalid;
    text.remove_prefix(at + 1);
  }
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return invalid;
    url.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    url.host = text.substr(0, text.find(':'));
    port = text.substr(url.host.size());
  }
  if (url.host.empty() || text.find_first_of("?#") != text.npos) return invalid;
  if (port.empty()) return url;
  const auto read = std::from_chars(port.data() + 1, port.data() + port.size(), url.port);
  if (port[0] != ':' || read.ec != std::errc() || read.ptr != port.data() + port.size() || url.port == 0)
    return invalid;
  return url;
}

}  // namespace coir::mqtt
