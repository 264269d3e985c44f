#include "names/name_cache.h"

#include <coir/deadline.h>
#include <coir/spinlock.h>
#include <string.h>

#include <algorithm>

#include "base/rounded.h"

namespace coir::names {
namespace {

constexpr std::uint32_t kLongest = 86'400;
constexpr std::int64_t kSecond = 1'000'000'000;

// Entry is an answer in the ring; the name and the addresses follow.
struct Entry {
  std::int64_t until;   // of the monotonic clock
  std::uint16_t bytes;  // to the next entry
  std::uint8_t name;    // its bytes; 0 in what fills the ring up to its end
  std::uint8_t addresses;
};

// Ring is a queue of entries: the oldest at tail_, room for the next at head_. Guarded by lock_.
class Ring {
 public:
  bool find(const Name& name, Addresses& found, std::int64_t now) noexcept {
    const Locked locked(lock_);
    Entry* const entry = at(name);
    if (entry == nullptr || entry->until <= now) return false;
    PackedAddresses::load(addresses_of(*entry), entry->addresses, Deadline::at_ns(entry->until), found);
    return true;
  }

  void add(const Name& name, const Addresses& found, std::int64_t until) noexcept {
    const std::size_t bytes =
        rounded(sizeof(Entry) + name.wire().size() + PackedAddresses::bytes(found), alignof(Entry));
    const Locked locked(lock_);
    if (Entry* const old = at(name); old != nullptr) old->until = 0;
    if (head_ + bytes > sizeof memory_) wrap();
    while (used_ != 0 && tail_ >= head_ && tail_ < head_ + bytes) drop();
    if (used_ == 0) tail_ = head_;
    Entry& entry = entry_at(head_);
    entry = {until, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(name.wire().size()),
             static_cast<std::uint8_t>(found.size())};
    memcpy(name_of(entry), name.wire().data(), name.wire().size());
    PackedAddresses::store(found, addresses_of(entry));
    head_ += bytes;
    ++used_;
  }

  void clear() noexcept {
    const Locked locked(lock_);
    head_ = tail_ = used_ = 0;
  }

 private:
  Entry& entry_at(std::size_t at) noexcept { return *reinterpret_cast<Entry*>(memory_ + at); }
  static unsigned char* name_of(Entry& entry) noexcept { return reinterpret_cast<unsigned char*>(&entry + 1); }
  static unsigned char* addresses_of(Entry& entry) noexcept { return name_of(entry) + entry.name; }

  Entry* at(const Name& name) noexcept {
    std::size_t where = tail_;
    for (std::size_t left = used_; left != 0; --left) {
      Entry& entry = entry_at(where);
      if (entry.until != 0 && name.is({name_of(entry), entry.name})) return &entry;
      where = after(where);
    }
    return nullptr;
  }

  std::size_t after(std::size_t where) noexcept {
    where += entry_at(where).bytes;
    return where + sizeof(Entry) > sizeof memory_ ? 0 : where;
  }

  void drop() noexcept {
    tail_ = after(tail_);
    --used_;
  }

  // wrap fills the ring up to its end; the next entry stands at its beginning.
  void wrap() noexcept {
    while (used_ != 0 && tail_ >= head_) drop();
    if (used_ == 0) tail_ = 0;
    if (used_ != 0 && head_ + sizeof(Entry) <= sizeof memory_) {
      entry_at(head_) = {0, static_cast<std::uint16_t>(sizeof memory_ - head_), 0, 0};
      ++used_;
    }
    head_ = 0;
  }

  Spinlock lock_;
  std::size_t head_ = 0, tail_ = 0, used_ = 0;
  alignas(Entry) unsigned char memory_[kCacheBytes] = {};
};

constinit Ring ring;

}  // namespace

void PackedAddresses::store(const Addresses& from, unsigned char* to) noexcept {
  memcpy(to, from.entries_, bytes(from));
}

void PackedAddresses::add(Addresses& to, std::span<const unsigned char> bytes) noexcept {
  if (to.count_ == Addresses::kMost) return;
  Addresses::Entry& entry = to.entries_[to.count_++];
  entry = {};
  memcpy(entry.bytes, bytes.data(), bytes.size());
  if (bytes.size() < sizeof entry.bytes) entry.scope = Addresses::Entry::kIpv4;
}

void PackedAddresses::load(const unsigned char* from, std::uint8_t count, Deadline until, Addresses& into) noexcept {
  into.count_ = count;
  memcpy(into.entries_, from, bytes(into));
  into.valid_until_ = until;
}

bool recall(const Name& name, Addresses& found) noexcept {
  return ring.find(name, found, monotonic_ns());
}

void remember(const Name& name, const Addresses& found, std::uint32_t seconds) noexcept {
  if (seconds != 0) ring.add(name, found, monotonic_ns() + std::min(seconds, kLongest) * kSecond);
}

void forget_all() noexcept {
  ring.clear();
}

}  // namespace coir::names
