#include "control.h"

#if !COIR_NO_ASYNC

#include <algorithm>

#include "../complaint.h"
#include "../daemon.h"
#include "answer.h"
#include "memory.h"
#include "request.h"

namespace {

void write_seen(ControlAnswer& answer, const BoardParts::Seen& pin, bool may_switch) noexcept {
  answer.item().member("name", pin.place.name);
  if (!pin.place.controller.empty()) answer.member("line", pin.place.line).member("controller", pin.place.controller);
  if (pin.place.number != coir::port::kNoPinNumber) answer.member("number", pin.place.number);
  const auto& status = pin.status;
  const std::string_view holder(status.holder);
  answer.member("direction", pin.error != 0          ? "missing"
                             : !status.has_direction ? "unknown"
                             : status.output         ? "out"
                                                     : "in");
  answer.member("level", !status.has_level ? "unknown" : status.high ? "on" : "off");
  answer.member("holder", holder.empty() ? (status.held ? "unknown" : "none") : holder);
  answer.member("named", may_switch ? "yes" : "no");
  answer.end_item();
}

}  // namespace

std::string_view Control::tell_pins(bool json) noexcept {
  const std::size_t count = daemon_->board.list(memory_->pins);
  ControlAnswer answer(memory_->answer, json);
  answer.member("count", count).list("pins");
  for (const BoardParts::Seen& each : std::span(memory_->pins).first(count))
    write_seen(answer, each, daemon_->board.is_named(each.place.name));
  answer.end_list();
  return answer.finish();
}

// use_pin answers for one pin, of those that --pin names. A fault's text lies in memory_->fault.
std::string_view Control::use_pin(const Request& request, std::string_view& fault) noexcept {
  BoardParts& board = daemon_->board;
  const auto fail = [&](std::string_view why) {
    fault = {memory_->fault, why.copy(memory_->fault, sizeof memory_->fault)};
    return std::string_view();
  };
  if (!board.is_named(request.name)) return fail("no --pin of coird names it: add the option, and restart coird");
  ControlAnswer answer(memory_->answer, request.json());
  answer.member("name", request.name);
  if (request.word == "on" || request.word == "off") {
    const bool high = request.word == "on";
    say({"--control: pin ", request.name, " ", request.word});
    if (const auto written = board.write_pin(request.name, high); !written) return fail(written.error().text());
    answer.member("direction", "out").member("level", request.word);
  } else if (request.word == "read") {
    const auto level = board.read_pin(request.name);
    if (!level) return fail(level.error().text());
    answer.member("direction", level->output ? "out" : "in").member("level", level->high ? "on" : "off");
  } else {
    return fail("a pin is switched on or off, or read");
  }
  return answer.finish();
}

#endif
