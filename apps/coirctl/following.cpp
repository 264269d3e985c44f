// coirctl log -f. Declared in control.h.
#include <coir/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "asking.h"
#include "fetch_options.h"
#include "output.h"

namespace {

constexpr int kPollPauseMs = 250;

// NewLines is what coird says to "log follow N".
struct NewLines {
  std::uint64_t first = 0;  // the number of the first of the lines
  std::uint64_t run = 0;
  std::string_view lines;

  bool read(std::string_view text) noexcept {
    const char* const end = text.data() + text.size();
    const auto number = std::from_chars(text.data(), end, first);
    if (number.ec != std::errc() || number.ptr == end) return false;
    const auto other = std::from_chars(number.ptr + 1, end, run);
    if (other.ec != std::errc() || other.ptr == end || *other.ptr != '\n') return false;
    lines = {other.ptr + 1, static_cast<std::size_t>(end - other.ptr - 1)};
    return true;
  }
};

void print_lost(std::uint64_t count, bool json) noexcept {
  char line[120];
  write_text(
      json ? coir::format(line, "{\"schema\":1,\"lost\":", count, "}\n")
           : coir::format(line, "coirctl: ", count, " lines are lost: they came faster than they were asked for\n"));
}

void print_lines(std::string_view lines, bool json) noexcept {
  static char room[24 * 1024];  // for a line of 4,096 bytes, each of them escaped
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    write_text(json ? coir::format(room, "{\"schema\":1,\"line\":", coir::json_quoted(line), "}\n")
                    : coir::format(room, coir::escaped(line), "\n"));
  }
}

}  // namespace

// It asks for the lines from a number on, again and again, so that coird keeps nothing for it. A number that coird has no more
// tells how many lines are lost.
int follow_log(const ControlOptions& options) noexcept {
  Asking asking(options);
  NewLines answer;
  for (std::uint64_t next = 0, run = 0;; ::poll(nullptr, 0, kPollPauseMs)) {
    char request[64];
    std::string_view text;
    if (const int status = asking.ask(coir::format(request, "log follow ", next), text); status != kHasDone)
      return status;
    if (!answer.read(text)) return asking.fail(kUnknown, "coird cannot be followed: restart it with this version");
    if (run != 0 && answer.run != run) {
      // Another coird, whose lines have numbers of their own.
      run = answer.run;
      next = 1;
      if (const int status = asking.ask("log follow 1", text); status != kHasDone) return status;
      if (!answer.read(text)) return kUnknown;
    }
    if (next != 0 && answer.first > next) print_lost(answer.first - next, options.json);
    print_lines(answer.lines, options.json);
    if (!all_written()) return asking.fail(kRefused, "standard output cannot be written");
    next = answer.first + static_cast<std::uint64_t>(std::ranges::count(answer.lines, '\n'));
    run = answer.run;
  }
}
