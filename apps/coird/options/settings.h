#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "setting.h"

// Settings is a list of settings, and the texts that they refer to, in blocks of memory charged to account::process.
// Nothing in it moves. Move-only.
class Settings {
 public:
  constexpr Settings() noexcept = default;
  Settings(Settings&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}
  Settings& operator=(Settings&&) = delete;
  ~Settings();

  // make_room makes room for `most` settings, side by side, and `bytes` of text. False: there is no memory.
  [[nodiscard]] bool make_room(std::size_t most, std::size_t bytes) noexcept;

  // keep copies a text, with a null behind it, into the room that was made last.
  const char* keep(std::string_view text) noexcept;
  // add takes of that room, too, and makes more when all of it is taken. Null: there is no memory.
  [[nodiscard]] const Setting* add(const Setting& setting) noexcept;

  // each calls visit(const Setting&) for all, in their order.
  void each(auto visit) const noexcept {
    for (const Block* block = first_; block != nullptr; block = block->next) {
      for (std::size_t i = 0; i < block->count; ++i) visit(block->settings()[i]);
    }
  }

  // last_of is the last setting of an option; null: it was not given.
  const Setting* last_of(const Row& row) const noexcept;

 private:
  struct Block {
    Block* next = nullptr;
    std::size_t bytes;  // charged
    std::size_t most;
    std::size_t count = 0;
    char* text;  // where the next text goes

    Setting* settings() noexcept { return reinterpret_cast<Setting*>(this + 1); }
    const Setting* settings() const noexcept { return reinterpret_cast<const Setting*>(this + 1); }
  };

  Block* first_ = nullptr;
  Block* last_ = nullptr;
};
