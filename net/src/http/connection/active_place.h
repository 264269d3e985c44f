#pragma once

#include <coir/atomic.h>

#include <cstdint>

namespace coir::http {

struct SessionBuffers;

// ActivePlace is what an exchange holds among the active: one of ServerOptions::max_active, and a session's buffers.
// It holds them only while bytes move or its handler computes:
//
//   the handler begins to wait     offer      from now on others may take the place, as they need it
//   it uses the exchange again     reclaim    at once, if the place is still there; else it waits in line for another
//
// Nothing happens while there are places enough: an offer is a link in a list. The buffers go with the place, unless
// something lies in them that the exchange still needs; then they stay, charged, and only the place goes.
//
// While its children live, a handler that waits keeps its buffers, and each call of a child waits for the place, which is
// offered again at once.
//
// All waits of an exchange count together, so that a client that sends a few bytes again and again keeps no place.
struct ActivePlace {
  // An exchange that has waited for less keeps its place: most waits are short, and with each place more handlers would
  // be under way.
  static constexpr std::int64_t kLeastWaitNs = 20'000'000;

  SessionBuffers* buffers = nullptr;  // null: others have them. Read by the owner alone, once it has reclaimed
  ActivePlace* previous = nullptr;
  ActivePlace* next = nullptr;
  std::int64_t waited_ns = 0;   // of this exchange, in offers that are over; guarded as `offered`
  std::int64_t offered_ns = 0;  // when the offer began, less `waited_ns`
  // Written by the owner or a child of the handler, under the engine's lock.
  Atomic<bool> offered = false;
  bool counted = true;         // among the active; guarded by the engine's lock
  bool keeps_buffers = false;  // as long as it is offered; guarded by the engine's lock
};

}  // namespace coir::http
