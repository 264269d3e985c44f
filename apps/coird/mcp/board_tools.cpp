#include "board_tools.h"

#include "tools.h"

#if COIRD_MCP

#include <coir/blocking.h>
#include <coir/format.h>

#include <new>

#include "../board_parts.h"
#include "workspace.h"

using coir::Error;
using coir::mcp::Call;
using coir::port::Hardware;

namespace {

constexpr std::size_t kMost = 16;  // of things in a list

// on_board runs a call of Hardware on the blocking pool.
template <class F>
auto on_board(Call& call, F f) noexcept {
  using T = typename std::invoke_result_t<F&, const Hardware&>::value_type;
  const Hardware& hardware = call.context<Toolbox>().board->hardware();
  return coir::blocking_borrowed(
      [&](const coir::BlockingStop&) -> std::expected<T, Error> {
        auto done = f(hardware);
        if (!done) return std::unexpected(Error::from_errno(done.error()));
        if constexpr (std::is_void_v<T>) {
          return {};
        } else {
          return *done;
        }
      },
      call.deadline());
}

// answer_list writes {"NAME": [...]} of the things that `find` puts into a span.
template <class Thing, class Find, class Write>
void answer_list(Call& call, std::string_view name, Find find, Write write) noexcept {
  const Workspace room(kMost * sizeof(Thing)), memory(kMost * 128 + 64);
  if (room.bytes().empty() || memory.bytes().empty()) return call.fail("there is no memory for that at the moment");
  auto* const things = reinterpret_cast<Thing*>(room.bytes().data());
  for (std::size_t i = 0; i < kMost; ++i) ::new (things + i) Thing;
  const auto count = on_board(call, [&](const Hardware& hardware) { return find(hardware, std::span(things, kMost)); });
  if (!count) return call.fail(describe(count.error()));
  TextSink text(memory.bytes());
  coir::JsonWriter out(text);
  out.object().name(name).array();
  for (const Thing& each : std::span(things, *count)) write(out, each);
  out.end().end();
  if (out.finish()) return call.structured_json(text.text());
  call.fail("the answer is too long");
}

}  // namespace

void temperatures(Call& call) {
  using coir::port::Thermometer;
  answer_list<Thermometer>(
      call, "sensors",
      [](const Hardware& hardware, std::span<Thermometer> into) { return hardware.thermometers(into); },
      [](coir::JsonWriter& out, const Thermometer& each) {
        out.object().member("name", each.name).member("celsius", coir::fixed(each.millidegrees, 3)).end();
      });
}

void list_leds(Call& call) {
  using coir::port::Led;
  answer_list<Led>(
      call, "leds", [](const Hardware& hardware, std::span<Led> into) { return hardware.leds(into); },
      [](coir::JsonWriter& out, const Led& each) {
        out.object().member("name", each.name).member("brightness", each.brightness);
        out.member("most", each.most).end();
      });
}

void set_led(Call& call, const LedBrightness& wanted) {
  const auto set =
      on_board(call, [&](const Hardware& hardware) { return hardware.set_led(wanted.name, wanted.brightness); });
  char text[160];
  if (set) return call.text(coir::format(text, wanted.name, ": ", wanted.brightness));
  const char* const why = set.error() == coir::ErrorCode::not_found ? "this board has no such LED"
                          : set.error().sys == ERANGE               ? "the brightness is over the LED's most"
                                                                    : describe(set.error());
  call.fail(coir::format(text, "LED ", coir::cut(wanted.name, 47), ": ", why));
}

std::optional<PinState> read_pin(Call& call, const PinName& wanted) {
  const auto pin = call.context<Toolbox>().board->read_pin(wanted.pin);
  if (pin) return PinState{.high = pin->high, .direction = pin->output ? "out" : "in"};
  call.fail(pin.error().text());
  return {};
}

void write_pin(Call& call, const PinLevel& wanted) {
  const auto done = call.context<Toolbox>().board->write_pin(wanted.pin, wanted.high);
  if (!done) return call.fail(done.error().text());
  char text[64];
  call.text(coir::format(text, "pin ", wanted.pin, " is ", wanted.high ? "high" : "low"));
}

std::optional<AdcReading> read_adc(Call& call, const AdcChannel& wanted) {
  auto alone = call.context<Toolbox>().converter.lock(call.deadline());
  if (!alone) return call.fail(describe(alone.error())), std::nullopt;
  const auto read =
      on_board(call, [&](const Hardware& hardware) { return hardware.read_adc(wanted.device, wanted.channel); });
  if (!read) {
    char text[160];
    const char* const why = read.error() == coir::ErrorCode::not_found ? "this board has none"
                            : read.error().sys == EBUSY                ? "another program converts; try again"
                                                                       : describe(read.error());
    call.fail(coir::format(text, "channel ", wanted.channel, ": ", why));
    return {};
  }
  AdcReading reading{.raw = read->raw};
  if (read->scaled) reading.volts = static_cast<double>(read->microvolts) / 1e6;
  return reading;
}

#endif
