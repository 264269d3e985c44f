#pragma once

// The representation that a client gets: preconditions, a range, a coding.
//
//   const ETag tag = make_etag(1'700'000'000'000'000'000, 1234, 1'800'000'000'000'000'000);
//   const auto result = evaluate(Request{}, {.etag = tag.text(), .modified = 1'700'000'000}, 1'800'000'000);
//   if (result.precondition == Precondition::not_modified) show(304);
//   const Range range = parse_range("bytes=0-99", 1234);
//   if (range.kind == Range::Kind::part) show(range.bytes());

#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// ETag (conditional.cpp) is an entity tag as it stands in the field: quoted, W/ in front when weak. 40 bytes, a value.
class ETag {
 public:
  ETag() noexcept = default;

  std::string_view text() const noexcept { return {text_, size_}; }
  bool weak() const noexcept { return size_ != 0 && text_[0] == 'W'; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  friend ETag make_etag(std::int64_t mtime_ns, std::uint64_t size, std::int64_t now_ns, char form) noexcept;

  char text_[39];
  std::uint8_t size_ = 0;
};

// kStableNs: a file that was written less than two seconds ago may change again without its time showing it (FAT
// counts in two-second steps, the others in ticks), so until then its validators are weak.
inline constexpr std::int64_t kStableNs = 2'000'000'000;

// make_etag derives a tag from a file's modification time and size, strong once the file has been left alone for
// kStableNs. Times are nanoseconds since 1970. A time in the future (a board without a clock) gives a weak tag. `form`,
// if not NUL, is a letter that tells the forms of one file apart, as compressed ones are.
ETag make_etag(std::int64_t mtime_ns, std::uint64_t size, std::int64_t now_ns, char form = '\0') noexcept;

// Validators describes the selected representation. `etag` may be empty (has none); `modified` is in seconds since
// 1970.
struct Validators {
  std::string_view etag;
  std::int64_t modified = 0;
  bool has_modified = true;
  bool stable = true;  // false within kStableNs of the last change: `modified` is then no strong validator either
  bool exists = true;  // false: there is no representation (a PUT that would create one)
};

// Precondition is how a request's preconditions came out.
enum class Precondition : std::uint8_t {
  proceed,       // answer as if unconditional; range_applies tells whether Range counts
  not_modified,  // 304
  failed,        // 412
};

struct PreconditionResult {
  Precondition precondition = Precondition::proceed;
  bool range_applies = false;
};

// evaluate goes through the preconditions of `request` in the order of RFC 9110, 13.2.2: If-Match, else
// If-Unmodified-Since; If-None-Match, else If-Modified-Since; If-Range. To be called only where the answer without them
// would be a success. `now` (seconds) is for two-digit years. A field that is no date, or occurs twice, is ignored.
// Costs a few instructions when the request has none of them.
PreconditionResult evaluate(const Request& request, const Validators& validators, std::int64_t now) noexcept;

// etag_list_matches tells whether the list of a field If-Match (strong) or If-None-Match (weak comparison) holds
// `etag`. A malformed list matches nothing. "*" is the caller's.
bool etag_list_matches(std::string_view list, std::string_view etag, bool strong) noexcept;

// Range (range.cpp) is what a Range field asks of a representation of known size: all of it (200), the bytes first to last, both
// included (206), or nothing that exists (416).
struct Range {
  enum class Kind : std::uint8_t { whole, part, unsatisfiable };

  Kind kind = Kind::whole;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  std::uint64_t bytes() const noexcept { return last - first + 1; }  // of a part
};

// parse_range evaluates the value of a Range field against `size`. An absent or malformed value, another unit than
// bytes and a list of several ranges mean whole, as RFC 9110, 14.2 lets a server do. Positions past any number are as
// good as infinite. Range has meaning for GET only: the caller asks for no other method.
Range parse_range(std::string_view value, std::uint64_t size) noexcept;

inline constexpr std::size_t kContentRangeBytes = 72;

// write_content_range writes the value of Content-Range for a part ("bytes 0-99/1234") or an unsatisfiable range
// ("bytes */1234") and returns it. Not for whole.
std::string_view write_content_range(const Range& range, std::uint64_t size,
                                     std::span<char, kContentRangeBytes> out) noexcept;

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

// AcceptedCodings (codings.cpp) is what a client says of content codings by Accept-Encoding (RFC 9110, 12.5.3).
//
//   const AcceptedCodings accepted(exchange.request());
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
