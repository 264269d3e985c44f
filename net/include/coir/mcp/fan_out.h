#pragma once

#include <coir/mcp/client.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::mcp {

// Branch is one part of a fan-out: a tool of one server, and, afterwards, what came of it.
struct Branch {
  McpClient* client = nullptr;
  std::string_view tool;
  std::string_view arguments;                // a JSON object; empty: none
  std::chrono::milliseconds within{30'000};  // its own deadline, from the start on

  // Until it has ended: stale. Of one that a faster one has ended: cancelled.
  std::expected<Answer, Failure> outcome = std::unexpected(Failure(ErrorCode::stale));
  std::chrono::milliseconds took{0};
};

enum class Spread : std::uint8_t {
  all,   // every branch is waited for, whatever becomes of the others
  race,  // the first answer that is no tool's failure ends the other branches
};

struct FanOutOptions {
  Spread spread = Spread::all;
  Deadline deadline;        // of all together
  std::uint32_t limit = 0;  // branches at a time; 0: all
  // came is called as each branch ends, by the fiber of that branch, one at a time. It may wait, and others then wait for
  // it. Null: none.
  void (*came)(void* context, Branch& branch) noexcept = nullptr;
  void* context = nullptr;
};

// fan_out calls the tools of all branches at once, each by a fiber of its own, and returns how many have answered. A
// server that is dead or slow costs its own branch alone: that ends with its error, at its own deadline at the latest.
// When the common deadline passes, what has come by then stays, and the other branches end with `timed_out`.
//
//   mcp::Branch parts[] = {{.client = &here, .tool = "status"}, {.client = &there, .tool = "status", .within = 2s}};
//   const auto answered = mcp::fan_out(parts, {.deadline = Deadline::after(5s), .came = show});
//   for (const auto& part : parts) if (part.outcome) use(part.outcome->result());
//
// From a fiber. Errors: cancelled and timed_out of the caller (all branches have ended by then, and what has come
// stays); unsupported where nothing can be waited for. A branch that gets no fiber ends with limit or no_memory.
[[nodiscard]] std::expected<std::size_t, Error> fan_out(std::span<Branch> branches,
                                                        const FanOutOptions& options = {}) noexcept;

}  // namespace coir::mcp
