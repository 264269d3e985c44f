#include "websocket/handshake.h"

#include "http/text/characters.h"
#include "websocket/accept.h"

namespace coir::http {
namespace {

// Only is a field that may occur once: its value if it does, and how often it occurs.
struct Only {
  std::string_view value;
  unsigned count = 0;

  bool is(std::string_view wanted) const noexcept { return count == 1 && value == wanted; }
};

Only only(std::span<const Header> fields, std::string_view name) noexcept {
  Only found;
  for (const Header& line : fields) {
    if (!equals_ignoring_case(line.name, name)) continue;
    found.value = line.value;
    ++found.count;
  }
  return found;
}

// names tells whether one of the lines of the list `name` holds `token`.
bool names(std::span<const Header> fields, std::string_view name, std::string_view token) noexcept {
  for (const Header& line : fields) {
    if (equals_ignoring_case(line.name, name) && list_has_token(line.value, token)) return true;
  }
  return false;
}

// among returns the element of `list` that is `wanted`, with case, or an empty view.
std::string_view among(std::span<const std::string_view> list, std::string_view wanted) noexcept {
  for (const std::string_view element : list) {
    if (element == wanted) return element;
  }
  return {};
}

// choose_subprotocol goes through the client's lists. False: an element is no token.
bool choose_subprotocol(std::span<const Header> fields, std::span<const std::string_view> spoken,
                        std::string_view& chosen) noexcept {
  for (const Header& line : fields) {
    if (!equals_ignoring_case(line.name, "sec-websocket-protocol")) continue;
    for (std::string_view list = line.value; !list.empty();) {
      const std::string_view element = until(list, ',');
      list.remove_prefix(element.size() < list.size() ? element.size() + 1 : list.size());
      const std::string_view name = trim(element);
      if (name.empty()) continue;
      if (!is_token(name)) return false;
      if (chosen.empty()) chosen = among(spoken, name);
    }
  }
  return true;
}

}  // namespace

Handshake read_handshake(const Request& request, std::span<const std::string_view> spoken) noexcept {
  const std::span<const Header> fields = request.headers;
  if (request.method != Method::get) return {.status = 405};
  if (request.minor == 0) return {.status = 400};
  if (!request.asks_websocket) return {.status = 426};
  if (!names(fields, "connection", "upgrade") || request.framing != Framing::none) return {.status = 400};
  const Only version = only(fields, "sec-websocket-version");
  if (version.count != 1) return {.status = 400};
  if (version.value != "13") return {.status = 426};
  const Only key = only(fields, "sec-websocket-key");
  if (key.count != 1 || !is_websocket_key(key.value)) return {.status = 400};
  Handshake handshake{.status = 101, .key = key.value};
  if (!choose_subprotocol(fields, spoken, handshake.subprotocol)) return {.status = 400};
  return handshake;
}

std::string_view refusal_fields(std::uint16_t status) noexcept {
  if (status == 405) return "Allow: GET\r\n";
  if (status == 426) return "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
  return {};
}

void write_handshake_fields(ResponseHead& head, const Handshake& handshake) noexcept {
  const auto accept = websocket_accept(handshake.key);
  head.fixed("Upgrade: websocket\r\nConnection: Upgrade\r\n");
  head.field("Sec-WebSocket-Accept", std::string_view(accept.data(), accept.size()));
  if (!handshake.subprotocol.empty()) head.field("Sec-WebSocket-Protocol", handshake.subprotocol);
}

void write_handshake_fields(ResponseHead& lines, std::string_view key,
                            std::span<const std::string_view> offered) noexcept {
  lines.fixed("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
  lines.field("Sec-WebSocket-Key", key);
  for (const std::string_view name : offered) {
    // A line of its own for each: a list may be told in several. A value that is no token does not count.
    lines.field("Sec-WebSocket-Protocol", is_token(name) ? name : std::string_view("\n"));
  }
}

std::expected<std::string_view, Error> check_handshake(int status, std::span<const Header> fields, std::string_view key,
                                                       std::span<const std::string_view> offered) noexcept {
  const auto wanted = websocket_accept(key);
  const Only upgrade = only(fields, "upgrade");
  const bool accepted = status == 101 && upgrade.count == 1 && equals_ignoring_case(upgrade.value, "websocket") &&
                        names(fields, "connection", "upgrade") &&
                        only(fields, "sec-websocket-accept").is({wanted.data(), wanted.size()}) &&
                        only(fields, "sec-websocket-extensions").count == 0;
  const Only chosen = only(fields, "sec-websocket-protocol");
  const bool offered_it = chosen.count == 0 || (chosen.count == 1 && !among(offered, chosen.value).empty());
  if (!accepted || !offered_it) return std::unexpected(ErrorCode::protocol);
  return chosen.count == 0 ? std::string_view() : among(offered, chosen.value);
}

}  // namespace coir::http
