#include "settings.h"

#include <coir/ledger.h>
#include <stdlib.h>
#include <string.h>

#include <new>

Settings::~Settings() {
  while (first_ != nullptr) {
    Block* const gone = std::exchange(first_, first_->next);
    coir::account::process.refund(gone->bytes);
    ::free(gone);
  }
}

const Setting* Settings::last_of(const Row& row) const noexcept {
  const Setting* found = nullptr;
  each([&](const Setting& setting) {
    if (setting.row == &row) found = &setting;
  });
  return found;
}

bool Settings::make_room(std::size_t most, std::size_t bytes) noexcept {
  const std::size_t all = sizeof(Block) + most * sizeof(Setting) + bytes;
  if (!coir::account::process.charge(all)) return false;
  void* const memory = ::malloc(all);
  if (memory == nullptr) {
    coir::account::process.refund(all);
    return false;
  }
  Block* const block = new (memory) Block{.bytes = all, .most = most, .text = nullptr};
  block->text = reinterpret_cast<char*>(block->settings() + most);
  (last_ == nullptr ? first_ : last_->next) = block;
  last_ = block;
  return true;
}

const char* Settings::keep(std::string_view text) noexcept {
  char* const kept = last_->text;
  memcpy(kept, text.data(), text.size());
  kept[text.size()] = '\0';
  last_->text += text.size() + 1;
  return kept;
}

const Setting* Settings::add(const Setting& setting) noexcept {
  if (last_ == nullptr || last_->count == last_->most) {
    char* const text = last_ != nullptr ? last_->text : nullptr;
    constexpr std::size_t kMore = 8;
    if (!make_room(kMore, 0)) return nullptr;
    if (text != nullptr) last_->text = text;  // that room goes on to count
  }
  return new (last_->settings() + last_->count++) Setting(setting);
}
