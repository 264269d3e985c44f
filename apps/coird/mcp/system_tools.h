#pragma once

#include "options.h"

#if COIRD_MCP
#include <coir/mcp.h>

#include <cstdint>
#include <optional>
#include <string_view>

// The tools that tell of the machine and of the daemon on it. Their context is a Toolbox (tools.h).

struct SystemFacts {
  std::string_view version, board, host, kernel, machine;
  std::int64_t uptime_s = 0;
  std::uint64_t memory_kb = 0, available_kb = 0, resident_kb = 0;
  std::uint64_t connections = 0, requests = 0;
};
inline constexpr auto kSystemFacts = coir::mcp::fields(
    coir::mcp::field<&SystemFacts::version>("version", "of coird"),
    coir::mcp::field<&SystemFacts::board>("board", "that coird was built for"),
    coir::mcp::field<&SystemFacts::host>("host"), coir::mcp::field<&SystemFacts::kernel>("kernel"),
    coir::mcp::field<&SystemFacts::machine>("machine", "the processor's architecture"),
    coir::mcp::field<&SystemFacts::uptime_s>("uptime_s", "seconds since the machine has started"),
    coir::mcp::field<&SystemFacts::memory_kb>("memory_kb"),
    coir::mcp::field<&SystemFacts::available_kb>("available_kb", "of the memory, what programs can still take"),
    coir::mcp::field<&SystemFacts::resident_kb>("resident_kb", "of the memory, what coird takes"),
    coir::mcp::field<&SystemFacts::connections>("connections", "open to coird"),
    coir::mcp::field<&SystemFacts::requests>("requests", "that coird has answered"));

struct LogTail {
  std::uint32_t lines = 20;
};
inline constexpr auto kLogTail =
    coir::mcp::fields(coir::mcp::field<&LogTail::lines>("lines", "how many").between(1, 200).optional());

struct TimeNow {
  std::int64_t unix_seconds = 0;
  std::string_view utc;
  bool set = false;
};
inline constexpr auto kTime =
    coir::mcp::fields(coir::mcp::field<&TimeNow::unix_seconds>("unix_seconds"),
                      coir::mcp::field<&TimeNow::utc>("utc", "as HTTP writes dates"),
                      coir::mcp::field<&TimeNow::set>("set", "false: the clock has not been set since the start"));

std::optional<SystemFacts> system_facts(coir::mcp::Call& call);
void memory_ledger(coir::mcp::Call& call);
void list_fibers(coir::mcp::Call& call);
void log_tail(coir::mcp::Call& call, const LogTail& wanted);
void tell_time(coir::mcp::Call& call);
#endif
