#include <coir/http/wire/representation.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// parse_weight reads "0", "1", "0.5" up to three decimals (RFC 9110, 12.4.2), in thousandths; absent for anything else.
std::optional<std::uint16_t> parse_weight(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return {};
  unsigned weight = text[0] == '1' ? 1000 : 0;
  text.remove_prefix(1);
  if (text.empty()) return static_cast<std::uint16_t>(weight);
  if (text[0] != '.') return {};
  text.remove_prefix(1);
  unsigned unit = 100;
  for (const char c : text) {
    if (!is_digit(c)) return {};
    weight += static_cast<unsigned>(c - '0') * unit;
    unit /= 10;
  }
  if (weight > 1000) return {};
  return static_cast<std::uint16_t>(weight);
}

// weight_of reads what stands behind the semicolon of an element: a weight alone.
std::optional<std::uint16_t> weight_of(std::string_view parameter) noexcept {
  parameter = trim(parameter);
  if (parameter.size() < 2 || (parameter[0] | 0x20) != 'q' || parameter[1] != '=') return {};
  return parse_weight(after(parameter, 2));
}

}  // namespace

AcceptedCodings::AcceptedCodings(const Request& request) noexcept {
  std::uint16_t others = kUnnamed;
  bool any = false;
  for (const Header& header : request.headers) {
    if (!equals_ignoring_case(header.name, "accept-encoding")) continue;
    any = true;
    read(header.value, others);
  }
  constexpr std::uint16_t kIfNothingElse = 1;
  for (unsigned i = 0; i < kCodings; ++i) {
    if (quality_[i] != kUnnamed) continue;
    const bool identity = static_cast<Coding>(i) == Coding::identity;
    if (any && others != kUnnamed) {
      quality_[i] = others;
    } else {
      quality_[i] = identity ? kIfNothingElse : 0;
    }
  }
}

void AcceptedCodings::read(std::string_view line, std::uint16_t& others) noexcept {
  while (!line.empty()) {
    const std::string_view element = until(line, ',');
    line.remove_prefix(std::min(element.size() + 1, line.size()));
    const std::string_view given = until(element, ';');
    const std::string_view name = trim(given);
    std::optional<std::uint16_t> weight = std::uint16_t{1000};
    if (given.size() != element.size()) weight = weight_of(after(element, given.size() + 1));
    if (!weight) continue;
    if (name == "*") {
      others = *weight;
    } else if (equals_ignoring_case(name, "identity")) {
      quality_[static_cast<unsigned>(Coding::identity)] = *weight;
    } else if (equals_ignoring_case(name, "gzip") || equals_ignoring_case(name, "x-gzip")) {
      quality_[static_cast<unsigned>(Coding::gzip)] = *weight;
    } else if (equals_ignoring_case(name, "br")) {
      quality_[static_cast<unsigned>(Coding::br)] = *weight;
    }
  }
}

std::optional<Coding> AcceptedCodings::best(Codings available) const noexcept {
  std::optional<Coding> chosen;
  for (unsigned i = 0; i < kCodings; ++i) {
    const auto coding = static_cast<Coding>(i);
    if (!holds(available, coding) || quality_[i] == 0) continue;
    if (!chosen || quality_[i] >= quality(*chosen)) chosen = coding;
  }
  return chosen;
}

}  // namespace coir::http
