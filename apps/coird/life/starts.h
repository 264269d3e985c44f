#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// Starts is what the file "starts" in the folder of --state keeps of starts that came soon one after the other.
struct Starts {
  std::uint64_t count = 0;     // with the last one
  std::uint64_t began_ms = 0;  // the last one, since the boot
  std::uint32_t boot = 0;      // a sum of the boot's id
  std::uint32_t of = 0;        // a sum of the build, the command line and the files of --config
};

inline constexpr std::uint64_t kLoop = 5;  // short runs in a row that make a crash loop

inline constexpr std::uint64_t kShortMs = 60'000;

// short_runs tells how many runs in a row have ended within a minute of their start, by what was kept and by this
// start, `now`. A run that ended with the machine is none, unless it had `failed` before, within that minute. A crash loop
// stays one until the sum `of` changes, but the first start of each boot may end it: for that start the number is kLoop - 1,
// unless safe mode has `failed`, too.
std::uint64_t short_runs(const Starts& kept, const Starts& now, bool failed) noexcept;

// pause_after is how many seconds coird waits after so many short runs, before it binds an address.
std::uint64_t pause_after(std::uint64_t runs) noexcept;

// write_starts makes the file's text, read_starts reads it. False: it is none.
std::string_view write_starts(const Starts& starts, std::span<char> room) noexcept;
[[nodiscard]] bool read_starts(std::string_view text, Starts& starts) noexcept;
