#pragma once

#include <coir/http/request.h>

#include <cstdint>
#include <string_view>

namespace coir::http {

// ETag is an entity tag as it stands in the field: quoted, W/ in front when weak. 40 bytes, a value.
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

}  // namespace coir::http
