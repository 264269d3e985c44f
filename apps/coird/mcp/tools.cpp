#include "tools.h"

#if COIRD_MCP

#include "board_tools.h"
#include "fetch_tool.h"
#include "system_tools.h"

namespace {

using coir::mcp::Tool;
using coir::mcp::tool;

// giving is a tool whose function writes its structured content itself, of texts that end with the function.
template <auto& kOut>
constexpr Tool giving(Tool made) noexcept {
  made.output_schema = coir::mcp::detail::kSchema<kOut>.view();
  return made;
}

// Name, who it is for, what it does; read-only tools come first. The four hints are what clients ask their users by.
constexpr Tool kTools[] = {
    tool<system_facts, coir::mcp::kNothing, kSystemFacts>(
        {.name = "system",
         .title = "System",
         .description = "Facts about this board: host name, kernel, processor, uptime, memory, connections",
         .read_only = true,
         .open_world = false}),
    tool<memory_ledger>({.name = "memory",
                         .title = "Memory ledger",
                         .description = "The accounts of the daemon's memory: use, peak, ceiling and refusals of each",
                         .read_only = true,
                         .open_world = false}),
    tool<list_fibers>({.name = "fibers",
                       .title = "Fibers",
                       .description = "The daemon's fibers: the state of each, and what it waits for",
                       .read_only = true,
                       .open_world = false}),
    tool<log_tail, kLogTail>({.name = "log",
                              .title = "Log",
                              .description = "The latest lines of the daemon's log",
                              .read_only = true,
                              .open_world = false}),
    giving<kTime>(
        tool<tell_time>({.name = "time",
                         .title = "Time",
                         .description = "The board's clock; a board without one starts in 1970 until the clock is set",
                         .read_only = true,
                         .open_world = false})),
    tool<temperatures>({.name = "temperature",
                        .title = "Temperature",
                        .description = "The board's thermometers in degrees Celsius",
                        .read_only = true,
                        .open_world = false}),
    tool<list_leds>({.name = "leds",
                     .title = "LEDs",
                     .description = "The board's LEDs and how bright each is",
                     .read_only = true,
                     .open_world = false}),
    tool<read_pin, kPin, kPinState>({.name = "read_pin",
                                     .title = "Read a pin",
                                     .description = "The level and the direction of a GPIO pin, by its name",
                                     .read_only = true,
                                     .open_world = false}),
    tool<read_adc, kChannel, kReading>(
        {.name = "read_adc",
         .title = "Read the ADC",
         .description = "The value that a channel of the analogue-to-digital converter measures",
         .read_only = true,
         .open_world = false}),
    tool<set_led, kLed>({.name = "led",
                         .title = "Set an LED",
                         .description = "Sets the brightness of an LED that the tool leds lists",
                         .destructive = false,
                         .idempotent = true,
                         .open_world = false}),
    tool<write_pin, kLevel>({.name = "write_pin",
                             .title = "Write a pin",
                             .description = "Makes a GPIO pin an output of a level. Devices on the pin act on it",
                             .destructive = true,
                             .idempotent = true,
                             .open_world = false}),
#if COIR_CLIENT
    giving<kFetched>(
        tool<fetch_url, kFetch>({.name = "fetch",
                                 .title = "Fetch",
                                 .description = "Gets a document by http or https from a host that is allowed",
                                 .read_only = true,
                                 .open_world = true})),
#endif
};

}  // namespace

std::span<const coir::mcp::Tool> coird_tools() noexcept {
  return kTools;
}

#endif
