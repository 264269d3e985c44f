#include "starts.h"

#include <coir/format.h>

#include <algorithm>
#include <charconv>

namespace {

constexpr std::uint64_t kLongestPause = 30;
constexpr std::string_view kFormat = "coird starts 1\n";

}  // namespace

std::uint64_t short_runs(const Starts& kept, const Starts& now, bool failed) noexcept {
  if (kept.of != now.of) return 0;
  const bool loop = kept.count > kLoop;  // the last run was in safe mode
  const bool booted = kept.boot != now.boot;
  if (loop && booted && !failed) return kLoop - 1;
  std::uint64_t runs = 0;
  if (booted) {
    runs = failed || kept.count == 0 ? kept.count : kept.count - 1;
  } else if (now.began_ms - kept.began_ms < kShortMs) {
    runs = kept.count;
  }
  return loop ? std::max(runs, kLoop) : runs;
}

std::uint64_t pause_after(std::uint64_t runs) noexcept {
  // One short run may be chance, and the first start in safe mode is another one.
  const std::uint64_t more = runs < kLoop ? runs : runs - kLoop;
  if (more == 0 || runs == 1) return 0;
  const std::uint64_t doubled = runs < kLoop ? more - 2 : more - 1;
  return doubled > 4 ? kLongestPause : std::min(std::uint64_t{1} << doubled, kLongestPause);
}

std::string_view write_starts(const Starts& starts, std::span<char> room) noexcept {
  coir::Formatter out(room);
  out.add(kFormat, "count: ", starts.count, "\nbegan_ms: ", starts.began_ms, "\nboot: ", starts.boot);
  return out.add("\nof: ", starts.of, "\n").text();
}

bool read_starts(std::string_view text, Starts& starts) noexcept {
  Starts read;
  std::string_view rest = text;
  const auto take = [&](std::string_view key, auto& into) {
    if (!rest.starts_with(key)) return;
    rest.remove_prefix(key.size());
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), into).ptr;
    rest.remove_prefix(std::min(static_cast<std::size_t>(end - rest.data()) + 1, rest.size()));
  };
  if (!rest.starts_with(kFormat)) return false;
  rest.remove_prefix(kFormat.size());
  take("count: ", read.count);
  take("began_ms: ", read.began_ms);
  take("boot: ", read.boot);
  take("of: ", read.of);
  // A text that was not written so differs.
  char room[192];
  if (write_starts(read, room) != text) return false;
  starts = read;
  return true;
}
