#pragma once

#include <coir/pressure.h>

#include "http/concurrent/dispatcher.h"
#include "http/connection/pressure_steps.h"

namespace coir::http {

// Evictor makes room: it closes the connections that can be spared first, for newcomers, for descriptors, and when
// memory is short.
class Evictor {
 public:
  Evictor(Engine& engine, Dispatcher& dispatcher) noexcept : engine_(engine), dispatcher_(dispatcher) {}
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;

  // attach and detach surround the time in which pressure on memory may close connections and free sessions.
  void attach() noexcept;
  void detach() noexcept;

  // take_evictable takes out the connection that may be evicted first, to be closed or used again: one whose client has
  // owed a flight of its handshake for longer than evict_after, or else the one that has rested for longest, if for
  // longer than that. One whose request has arrived unnoticed is served instead; `one_ends_soon` then tells that a
  // connection may be evictable in a moment. Null: there is none.
  Connection* take_evictable(bool& one_ends_soon) noexcept;

  // replace_one returns the record of an evicted connection for a newcomer, or null. It waits for 100 ms at most while
  // one may become evictable. From a fiber.
  Connection* replace_one() noexcept;

  // evict_idle is Engine's function of the same name.
  bool evict_idle() noexcept;

  // relieve looks at the machine's memory, makes room and refuses connections for which there will be none. Called
  // periodically.
  void relieve() noexcept;
  // shed_waiting refuses the connections that have waited for a session since that time or longer.
  void shed_waiting(std::int64_t not_after_ns) noexcept;

 private:
  std::size_t close_longest_resting(std::size_t wanted) noexcept;

  Engine& engine_;
  Dispatcher& dispatcher_;
  Atomic<std::int64_t> full_at_ns_ = 0;  // when there was last no connection to evict, or 0
  Relief unused_sessions_{
      pressure::trim,
      [](void* self, std::size_t wanted) noexcept { return static_cast<Evictor*>(self)->dispatcher_.relieve(wanted); },
      this};
  Relief resting_connections_{pressure::evict,
                              [](void* self, std::size_t wanted) noexcept {
                                return static_cast<Evictor*>(self)->close_longest_resting(wanted);
                              },
                              this};
};

}  // namespace coir::http
