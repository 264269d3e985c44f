// How Control tells the log. Declared in control/control.h.
#include "control.h"

#if !COIR_NO_ASYNC

#include <string.h>

#include <charconv>
#include <span>

#include "answer.h"
#include "memory.h"
#include "request.h"

namespace {

coir::LogLevel level_of(std::string_view name) noexcept {
  return coir::log_level_of(name).value_or(coir::LogLevel::info);
}

void add_line(ControlAnswer& answer, const coir::LogRecord& line) noexcept {
  char time[coir::LogRecord::kTimeBytes];
  answer.member("t", line.time(time))
      .member("level", name_of(line.level))
      .member("source", line.source)
      .member("msg", line.text);
}

}  // namespace

// The oldest lines are left out until the rest fits.
std::string_view Control::tell_log(const Request& request) noexcept {
  constexpr std::uint64_t kFewer = 8;
  for (std::uint64_t from = 0;;) {
    ControlAnswer answer(memory_->answer, request.json());
    coir::LogReader reader(from, level_of(request.name));
    answer.list("lines");
    std::uint64_t first = 0;
    while (const auto line = reader.read(memory_->log)) {
      if (first == 0) first = line->number;
      add_line(answer.item(), *line);
      answer.end_item();
    }
    answer.end_list();
    if (const std::string_view text = answer.finish(); !text.empty() || first == 0) return text;
    from = first + kFewer;
  }
}

// The answer to `coirctl log -f`, which asks again and again: "NEXT LOST RUN", then the lines, each as JSON if that is wanted.
// NEXT is the number to go on from, LOST how many lines were gone; RUN is another number with each start of coird.
std::string_view Control::tell_log_since(const Request& request) noexcept {
  constexpr std::size_t kHead = 80;
  std::uint64_t next = 0;
  std::from_chars(request.name.data(), request.name.data() + request.name.size(), next);
  coir::LogReader reader(next, level_of(request.word));
  const std::span<char> room = std::span(memory_->answer).subspan(kHead);
  std::size_t used = 0;
  for (;;) {
    coir::LogReader ahead = reader;
    const auto line = ahead.read(memory_->log);
    if (!line) {
      reader = ahead;
      break;
    }
    const bool json = request.form == "follow-json";
    ControlAnswer answer(room.subspan(used), json);
    add_line(json ? answer : answer.item(), *line);
    if (!json) answer.end_item();
    const std::string_view text = answer.finish();
    if (text.empty()) break;
    used += text.size();
    reader = ahead;
  }
  char head[kHead];
  const std::string_view first =
      coir::format(head, reader.next(), " ", next != 0 ? reader.lost() : 0, " ", began_ns_, "\n");
  char* const begin = room.data() - first.size();
  memcpy(begin, first.data(), first.size());
  return {begin, first.size() + used};
}

#endif
