#include "row.h"

#include <algorithm>
#include <string_view>

namespace {

// distance is how many letters have to be put in, left out or changed to make one name of the other, up to 3.
unsigned distance(std::string_view a, std::string_view b) noexcept {
  constexpr std::size_t kLongest = 24;
  if (a.size() > kLongest || b.size() > kLongest) return 3;
  unsigned before[kLongest + 1], here[kLongest + 1];
  for (unsigned i = 0; i <= b.size(); ++i) before[i] = i;
  for (unsigned i = 0; i < a.size(); ++i) {
    here[0] = i + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      here[k + 1] = std::min({before[k] + (a[i] == b[k] ? 0 : 1), before[k + 1] + 1, here[k] + 1});
    }
    std::ranges::copy(here, before);
  }
  return std::min(before[b.size()], 3U);
}

}  // namespace

const SectionText& section_text(Section section) noexcept {
  static constexpr SectionText kTexts[kSections] = {
      {"listen", "Addresses and names"},
      {"files", "Files"},
      {"gateway", "Forwarding requests"},
      {"mcp", "Agents (MCP, the Model Context Protocol)"},
      {"mqtt", "MQTT"},
      {"auth", "Authentication"},
      {"tls", "TLS"},
      {"limits", "Limits (K, M and G are 1024, 1024K and 1024M)"},
      {"timeouts", "Timeouts (seconds, or with a unit: 500ms, 30s, 2m)"},
      {"process", "The process"},
      {nullptr, "On the command line alone"},
  };
  return kTexts[static_cast<std::size_t>(section)];
}

const Row& route_key_row() noexcept {
  static constexpr Row kRouteKey = {
      .name = "route", .section = Section::gateway, .kind = Kind::text, .many = true, .reload = true};
  return kRouteKey;
}

const Row* find_row(std::string_view name) noexcept {
  const auto rows = all_rows();
  const auto found = std::ranges::find(rows, name, [](const Row& each) { return std::string_view(each.name); });
  return found == rows.end() ? nullptr : &*found;
}

const Row* nearest_row(std::string_view name) noexcept {
  const Row* nearest = nullptr;
  unsigned least = 3;
  for (const Row& each : all_rows()) {
    if (const unsigned far = distance(name, each.name); far < least) {
      least = far;
      nearest = &each;
    }
  }
  return nearest;
}
