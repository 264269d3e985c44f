#pragma once

#include <coir/mcp.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::mcp {

struct Listener;

// ListBits names lists that may change, a bit for each.
using ListBits = std::uint8_t;
inline constexpr unsigned kLists = 3;
inline constexpr ListBits kToolsBit = 1;
inline constexpr ListBits kResourcesBit = 2;
inline constexpr ListBits kPromptsBit = 4;
constexpr ListBits list_bit(ItemKind kind) noexcept {
  return kind == ItemKind::tools ? kToolsBit : kind == ItemKind::prompts ? kPromptsBit : kResourcesBit;
}

// Watched is a resource that somebody wants to hear of; its URI stands behind it.
struct Watched {
  Watched* next = nullptr;
  std::uint32_t sent = 0;  // the number of the event that told of it last
  std::uint16_t size = 0;
  std::uint16_t pending : 1 = 0;
  std::uint16_t removed : 1 = 0;   // not wanted any more: the last listener that sends it frees it
  std::uint16_t senders : 14 = 0;  // the listeners whose `current` it is; a retired one may be among them

  std::string_view uri() const noexcept { return {reinterpret_cast<const char*>(this + 1), size}; }
};

// Interests is what a client wants to hear of, and what has come about since it was told: of several changes of one
// thing it is told once, so that nothing piles up for one who is slow. Guarded by the listeners' lock.
struct Interests {
  Interests* previous = nullptr;
  Interests* next = nullptr;
  Listener* listener = nullptr;  // the stream that tells of it; null: none for now
  Watched* watched = nullptr;
  std::uint32_t sent[kLists] = {};  // the numbers of the events that told of the lists last
  std::uint32_t number = 0;         // of the latest event; legacy
  ListBits filter = 0;
  ListBits pending = 0;
  bool left = false;  // for good: nothing is watched any more, and a listener that comes now is retired

  Watched* find(std::string_view uri) const noexcept {
    for (Watched* each = watched; each != nullptr; each = each->next) {
      if (each->uri() == uri) return each;
    }
    return nullptr;
  }
  bool any_pending() const noexcept {
    if (pending != 0) return true;
    for (const Watched* each = watched; each != nullptr; each = each->next) {
      if (each->pending && !each->removed) return true;
    }
    return false;
  }
};

}  // namespace coir::mcp
