#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace coir::http {

// NameList keeps the first names of many, in the order of their bytes, as far as its memory goes.
//
// memory_   +-------+-----+-------+-------+ ....... +--------+--------+
//           | size  | mark| name  | size  |   free  | offset | offset |
//           +-------+-----+-------+-------+ ....... +--------+--------+
//           records, as they came                    one of each record, as many as count_
class NameList {
 public:
  static constexpr std::size_t kMostName = 255;

  // The memory holds 2 KB or more, 64 KB at most.
  explicit NameList(std::span<char> memory) noexcept : memory_(memory) {}

  // begin forgets the names, and wants those behind `after` next.
  void begin(std::string_view after) noexcept {
    after_size_ = copy(after_, after);
    bound_size_ = 0;
    used_ = count_ = 0;
  }

  // add keeps the name, unless it does not lie behind `after` or is larger than what there is room for. When the memory
  // is full, the larger half is dropped.
  void add(std::string_view name, bool folder) noexcept {
    if (name.empty() || name.size() > kMostName || name <= std::string_view(after_, after_size_)) return;
    if (bound_size_ != 0 && name > std::string_view(bound_, bound_size_)) return;
    if (used_ + 2 + name.size() + (count_ + 1) * sizeof(Offset) > memory_.size()) {
      drop_half();
      if (name > std::string_view(bound_, bound_size_)) return;
    }
    char* const record = memory_.data() + used_;
    record[0] = static_cast<char>(name.size());
    record[1] = folder ? kFolder : '\0';
    memcpy(record + 2, name.data(), name.size());
    set_offset(count_++, static_cast<Offset>(used_));
    used_ += 2 + name.size();
  }

  // sort puts the names in order.
  void sort() noexcept {
    // A heap sort: its code is small, and names that somebody chose do not make it slow.
    auto* const first = reinterpret_cast<Offset*>(memory_.data() + memory_.size()) - count_;
    const auto less = [this](Offset a, Offset b) { return name_of(a) < name_of(b); };
    std::make_heap(first, first + count_, less);
    std::sort_heap(first, first + count_, less);
  }

  std::size_t count() const noexcept { return count_; }
  // truncated tells whether names were dropped, which lie behind all that are there.
  bool truncated() const noexcept { return bound_size_ != 0; }
  // After sort: the name, and whether it is a folder's.
  std::string_view name(std::size_t at) const noexcept { return name_of(sorted(at)); }
  bool folder(std::size_t at) const noexcept { return memory_[sorted(at) + 1u] == kFolder; }

 private:
  using Offset = std::uint16_t;
  static constexpr char kFolder = 1;
  static constexpr char kDropped = 2;

  static std::size_t copy(char* into, std::string_view name) noexcept {
    memcpy(into, name.data(), name.size());
    return name.size();
  }
  std::string_view name_of(Offset at) const noexcept {
    return {memory_.data() + at + 2, static_cast<unsigned char>(memory_[at])};
  }
  void set_offset(std::size_t number, Offset at) noexcept {
    *(reinterpret_cast<Offset*>(memory_.data() + memory_.size()) - 1 - number) = at;
  }
  Offset sorted(std::size_t at) const noexcept {
    return *(reinterpret_cast<const Offset*>(memory_.data() + memory_.size()) - count_ + at);
  }

  void drop_half() noexcept {
    sort();
    const std::size_t kept = count_ / 2;
    bound_size_ = copy(bound_, name(kept - 1));
    for (std::size_t i = kept; i < count_; ++i) memory_[sorted(i) + 1u] = kDropped;
    const std::size_t end = used_;
    used_ = count_ = 0;
    for (std::size_t at = 0; at < end;) {
      const std::size_t size = 2u + static_cast<unsigned char>(memory_[at]);
      if (memory_[at + 1] != kDropped) {
        memmove(memory_.data() + used_, memory_.data() + at, size);
        set_offset(count_++, static_cast<Offset>(used_));
        used_ += size;
      }
      at += size;
    }
  }

  std::span<char> memory_;
  std::size_t used_ = 0;
  std::size_t count_ = 0;
  std::size_t after_size_ = 0;
  std::size_t bound_size_ = 0;  // 0: nothing was dropped
  char after_[kMostName];
  char bound_[kMostName];
};

}  // namespace coir::http
