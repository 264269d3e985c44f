#pragma once

#include <coir/error.h>
#include <coir/mqtt/topic.h>

#include <cstdint>
#include <expected>
#include <string_view>

namespace coir::mqtt {

// BrokerUrl is the address of a broker, "mqtt://user@host:port/path". It owns nothing; its views point into the text.
struct BrokerUrl {
  bool secure = false;        // mqtts
  std::uint16_t port = 1883;  // 8883 of mqtts
  std::string_view host;      // a name or an address, without the brackets of IPv6; never empty
  std::string_view user;      // empty: none
  std::string_view path;      // without the slash in front
};

// parse_broker_url takes an address apart. A password in it, which every user of the machine could read in the list of
// processes, is refused. Errors: unsupported (another scheme), untrusted (a password), invalid (anything else that is
// malformed; a byte that is not visible ASCII, a `%`). Any context.
[[nodiscard]] std::expected<BrokerUrl, Error> parse_broker_url(std::string_view text) noexcept;

}  // namespace coir::mqtt
