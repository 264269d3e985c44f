#pragma once

#include <coir/http/request.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace coir::http {

// Coding is a content coding of a stored file, the better one last.
enum class Coding : std::uint8_t { identity, gzip, br };
inline constexpr std::uint8_t kCodings = 3;

// Codings is a set of them.
using Codings = std::uint8_t;
constexpr Codings operator|(Codings set, Coding coding) noexcept {
  return static_cast<Codings>(set | 1u << static_cast<unsigned>(coding));
}
constexpr bool holds(Codings set, Coding coding) noexcept {
  return (set >> static_cast<unsigned>(coding) & 1u) != 0;
}

// AcceptedCodings is what a client says of content codings by Accept-Encoding (RFC 9110, 12.5.3).
//
//   const AcceptedCodings accepted(request);
//   const auto chosen = accepted.best(Codings{} | Coding::identity | Coding::gzip);
//   if (!chosen) return exchange.respond_status(406);
//
// An element that is malformed is left out. If several elements name a coding the last counts. No allocation; a few
// instructions a byte of the field.
class AcceptedCodings {
 public:
  // Reads every Accept-Encoding line of the request. A client that sends none is served identity.
  explicit AcceptedCodings(const Request& request) noexcept;

  // quality is how much the client wants a coding, in thousandths; 0: it refuses the coding. A client that does not
  // name identity takes it when nothing else is left: 1.
  std::uint16_t quality(Coding coding) const noexcept { return quality_[static_cast<unsigned>(coding)]; }

  // best returns the one of `available` that the client wants most, of equals the last of the enumeration. Absent: it
  // refuses all of them.
  std::optional<Coding> best(Codings available) const noexcept;

 private:
  void read(std::string_view line, std::uint16_t& others) noexcept;

  static constexpr std::uint16_t kUnnamed = 0xffff;
  std::uint16_t quality_[kCodings] = {kUnnamed, kUnnamed, kUnnamed};
};

}  // namespace coir::http
