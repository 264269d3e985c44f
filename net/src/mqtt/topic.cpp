#include <coir/mqtt.h>

#include <coir/utf8.h>

#include <algorithm>

namespace coir::mqtt {

namespace {

constexpr std::size_t kMostTopicBytes = 65'535;

bool is_text(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMostTopicBytes && !text.contains('\0') && is_utf8(text);
}

// cut_level takes the first level off `text`. `more` tells whether a slash came behind it.
std::string_view cut_level(std::string_view& text, bool& more) noexcept {
  const std::size_t slash = text.find('/');
  more = slash != text.npos;
  const std::string_view level = text.substr(0, slash);
  text = more ? text.substr(slash + 1) : std::string_view();
  return level;
}

// cut_share takes "$share/GROUP/" off the front of a shared subscription (MQTT 5, 4.8.2, and brokers of MQTT 3.1.1).
std::string_view cut_share(std::string_view filter) noexcept {
  constexpr std::string_view kShare = "$share/";
  if (!filter.starts_with(kShare)) return filter;
  const std::size_t slash = filter.find('/', kShare.size());
  return slash == filter.npos ? filter : filter.substr(slash + 1);
}

}  // namespace

bool is_topic(std::string_view text) noexcept {
  return is_text(text) && text.find_first_of("+#") == text.npos;
}

bool may_publish(std::string_view topic) noexcept {
  return is_topic(topic) && topic.front() != '$';
}

bool is_filter(std::string_view text) noexcept {
  if (!is_text(text)) return false;
  for (bool more = true; more;) {
    const std::string_view level = cut_level(text, more);
    if (level == "#") return !more;
    if (level != "+" && level.find_first_of("+#") != level.npos) return false;
  }
  return true;
}

bool matches(std::string_view filter, std::string_view topic) noexcept {
  filter = cut_share(filter);
  if (topic.starts_with('$') && (filter.starts_with('+') || filter.starts_with('#'))) return false;
  for (;;) {
    bool more_filter, more_topic;
    const std::string_view wanted = cut_level(filter, more_filter);
    if (wanted == "#") return true;
    const std::string_view level = cut_level(topic, more_topic);
    if (wanted != "+" && wanted != level) return false;
    // "a/#" takes "a" itself in.
    if (!more_topic) return !more_filter || filter == "#";
    if (!more_filter) return false;
  }
}

}  // namespace coir::mqtt
