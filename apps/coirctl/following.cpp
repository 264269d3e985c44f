// coirctl log -f. Declared in control.h.
#include <coir/format.h>
#include <poll.h>

#include <charconv>
#include <cstdint>

#include "asking.h"
#include "fetch_options.h"
#include "output.h"

namespace {

constexpr int kPollPauseMs = 250;

// NewLines is what coird says to "log follow N".
struct NewLines {
  std::uint64_t next = 0;  // the number to go on from
  std::uint64_t lost = 0;
  std::uint64_t run = 0;
  std::string_view lines;

  bool read(std::string_view text) noexcept {
    for (std::uint64_t* const number : {&next, &lost, &run}) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
      if (error != std::errc() || end == text.data() + text.size()) return false;
      if (*end != (number == &run ? '\n' : ' ')) return false;
      text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
    }
    lines = text;
    return true;
  }
};

void print_lost(std::uint64_t count, bool json) noexcept {
  char line[120];
  write_text(
      json ? coir::format(line, "{\"schema\":1,\"lost\":", count, "}\n")
           : coir::format(line, "coirctl: ", count, " lines are lost: they came faster than they were asked for\n"));
}

// print_lines prints them as coird has made them, as key=value or JSON.
void print_lines(std::string_view lines) noexcept {
  static char room[24 * 1024];
  write_text(coir::format(room, coir::escaped_lines(lines)));
}

}  // namespace

// It asks for the lines from a number on, again and again, so that coird keeps nothing for it.
int follow_log(const ControlOptions& options) noexcept {
  Asking asking(options);
  NewLines answer;
  const std::string_view form = options.json ? "follow-json" : "follow";
  for (std::uint64_t next = 0, run = 0;; ::poll(nullptr, 0, kPollPauseMs)) {
    char request[64];
    std::string_view text;
    const auto ask = [&](std::uint64_t from) {
      return asking.ask(coir::format(request, "log ", form, " ", from, " ", options.level), text);
    };
    if (const int status = ask(next); status != kHasDone) return status;
    if (!answer.read(text)) return asking.fail(kUnknown, "coird cannot be followed: restart it with this version");
    if (run != 0 && answer.run != run) {
      // Another coird, whose lines have numbers of their own.
      if (const int status = ask(1); status != kHasDone) return status;
      if (!answer.read(text)) return kUnknown;
    }
    if (answer.lost != 0) print_lost(answer.lost, options.json);
    print_lines(answer.lines);
    if (!all_written()) return asking.fail(kRefused, "standard output cannot be written");
    next = answer.next;
    run = answer.run;
  }
}
