#pragma once

#include "options.h"

#if COIRD_MCP
#include <coir/mcp.h>

#include <cstdint>
#include <optional>
#include <string_view>

// The tools that read and set the board's hardware, on the blocking pool. Their context is a Toolbox (tools.h).

inline constexpr std::string_view kPinHelp = "a name of the board such as GP14, CONTROLLER:LINE, or a number of sysfs";

struct PinName {
  std::string_view pin;
};
inline constexpr auto kPin = coir::mcp::fields(coir::mcp::field<&PinName::pin>("pin", kPinHelp).between(1, 31));

struct PinState {
  bool high = false;
  std::string_view direction;
};
inline constexpr auto kPinState = coir::mcp::fields(coir::mcp::field<&PinState::high>("high"),
                                                    coir::mcp::field<&PinState::direction>("direction", "in or out"));

struct PinLevel {
  std::string_view pin;
  bool high = false;
};
inline constexpr auto kLevel = coir::mcp::fields(coir::mcp::field<&PinLevel::pin>("pin", kPinHelp).between(1, 31),
                                                 coir::mcp::field<&PinLevel::high>("high", "the level to set"));

struct AdcChannel {
  std::uint32_t channel = 0;
  std::uint32_t device = 0;
};
inline constexpr auto kChannel = coir::mcp::fields(
    coir::mcp::field<&AdcChannel::channel>("channel").between(0, 63),
    coir::mcp::field<&AdcChannel::device>("device", "of several converters").between(0, 15).optional());

struct AdcReading {
  std::int32_t raw = 0;
  std::optional<double> volts;
};
inline constexpr auto kReading =
    coir::mcp::fields(coir::mcp::field<&AdcReading::raw>("raw", "as the converter counts"),
                      coir::mcp::field<&AdcReading::volts>("volts", "where the board tells the scale"));

struct LedBrightness {
  std::string_view name;
  std::uint32_t brightness = 0;
};
inline constexpr auto kLed =
    coir::mcp::fields(coir::mcp::field<&LedBrightness::name>("name").between(1, 47),
                      coir::mcp::field<&LedBrightness::brightness>("brightness", "0: off").between(0, 65535));

void temperatures(coir::mcp::Call& call);
void list_leds(coir::mcp::Call& call);
void set_led(coir::mcp::Call& call, const LedBrightness& wanted);
std::optional<PinState> read_pin(coir::mcp::Call& call, const PinName& wanted);
void write_pin(coir::mcp::Call& call, const PinLevel& wanted);
std::optional<AdcReading> read_adc(coir::mcp::Call& call, const AdcChannel& wanted);
#endif
