#pragma once

#include <coir/json.h>

#include <cstddef>
#include <optional>
#include <span>

#include "mcp/server/call_state.h"

namespace coir::mcp {

// Posted is a POST under way, in one block of account::mcp with its document behind it: what a call that waits holds beside
// its fiber's stack, which then is one page. endpoint.cpp makes it; the era of the message fills in the rest.
struct Posted {
  // make returns null where there is no memory. destroy ends what there is of a call, and frees.
  static Posted* make(ServerCore& core, http::Exchange& exchange, const Principal& who, std::size_t document) noexcept;
  static void destroy(Posted* posted) noexcept;

  std::span<char> memory() noexcept { return {reinterpret_cast<char*>(this + 1), bytes - sizeof(Posted)}; }

  ServerCore& core;
  http::Exchange& exchange;
  const std::size_t bytes;        // that are charged
  const std::size_t block_bytes;  // of the block, which may have been another's
  bool takes_events = false;      // the client, as an answer
  Principal who;
  std::optional<JsonDocument> document = {};
  Message message = {};
  std::optional<Reply> reply = {};
  std::optional<Incoming> in = {};
  std::optional<CallState> call = {};
};

}  // namespace coir::mcp
