#pragma once

#include <coir/config.h>

#include <string_view>

#if !COIR_MQTT
#error "this build of coir has no MQTT: configure it with -DCOIR_MQTT=ON"
#endif

namespace coir::mqtt {

// is_topic tells whether a message may be published under `text` (MQTT 3.1.1, 4.7): 1 to 65,535 bytes of UTF-8 without
// NUL and without the wildcards `+` and `#`. Topics that begin with `$` are the broker's own. Any context.
[[nodiscard]] bool is_topic(std::string_view text) noexcept;
[[nodiscard]] bool may_publish(std::string_view topic) noexcept;

// is_filter tells whether `text` may be subscribed to: as a topic, but `+` may stand for a whole level and `#` for all
// levels at the end. Any context.
[[nodiscard]] bool is_filter(std::string_view text) noexcept;

// matches tells whether a filter takes a topic in; both are well-formed. A wildcard in front takes no topic that begins
// with `$`. Any context.
[[nodiscard]] bool matches(std::string_view filter, std::string_view topic) noexcept;

}  // namespace coir::mqtt
