#include "http/files/file_cache.h"

#include <coir/detail/accounts.h>
#include <coir/http/wire/date.h>
#include <coir/http/wire/response.h>
#include <coir/port/memory.h>
#include <coir/program.h>
#include <coir/sum.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "base/rounded.h"

namespace coir::http {
namespace {

// The content is what costs; what a place says of it lies resident from the start.
constexpr std::size_t kPlaceBytes = FileTree::kCachedFileBytes;
static_assert(kPlaceBytes % port::kPageBytes == 0);
// The pages of the contents go back by themselves; without fibers none go.
constexpr std::size_t kContentAlignment = kFibers ? port::kPageBytes : alignof(std::max_align_t);

// kind_of tells a directory's index from a file, and a file's forms from each other.
constexpr std::uint8_t kind_of(bool directory, Coding form) noexcept {
  return static_cast<std::uint8_t>((directory ? 1 : 0) | static_cast<unsigned>(form) << 1);
}

// hash_of is a sum. An author of file names can make them collide; a bucket holds no more than the cache has places.
std::uint32_t hash_of(std::string_view path, std::uint8_t kind) noexcept {
  return sum_of(path, kEmptySum ^ kind);
}

// Some 292 years on either side of 1970 fit; a time beyond them, which file systems do hold, is the last that does.
std::int64_t nanoseconds(const timespec& time) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / kSecond - 1;
  return std::clamp<std::int64_t>(time.tv_sec, -kMost, kMost) * kSecond + time.tv_nsec;
}

}  // namespace

FileFacts FileFacts::of(const struct stat& info, std::string_view media_type, std::int64_t now, Coding form) noexcept {
  FileFacts facts;
  facts.size = static_cast<std::uint64_t>(info.st_size);
  facts.modified = info.st_mtim.tv_sec;
  facts.form = form;
  constexpr char kLetters[kCodings] = {'\0', 'g', 'b'};
  facts.etag =
      make_etag(nanoseconds(info.st_mtim), facts.size, now * 1'000'000'000, kLetters[static_cast<unsigned>(form)]);
  // A date in the future is not to be sent (RFC 9110, 8.8.2.1).
  char last_modified[kDateBytes];
  format_date(std::min<std::int64_t>(info.st_mtim.tv_sec, now), last_modified);
  ResponseHead lines(facts.lines_);
  lines.field("Last-Modified", {last_modified, kDateBytes});
  if (!facts.etag.empty()) lines.field("ETag", facts.etag.text());
  facts.validator_bytes_ = static_cast<std::uint8_t>(lines.lines().size());
  lines.field("Content-Type", media_type);
  lines.fixed("Accept-Ranges: bytes\r\n");
  facts.line_bytes_ = static_cast<std::uint8_t>(lines.lines().size());
  return facts;
}

bool FileCache::find(std::string_view path, bool directory, std::int64_t now, FileFacts& facts, std::span<char> content,
                     Coding form) noexcept {
  const std::uint8_t kind = kind_of(directory, form);
  const std::uint32_t hash = hash_of(path, kind);
  Locked locked(lock_);
  const Index index = look_up(path, kind, hash);
  if (index == kNone || places_[index].checked != now) return false;
  if (index != newest_) {
    unlink(index);
    push_newest(index);
  }
  const Place& place = places_[index];
  facts = place.facts;
  memcpy(content.data(), contents_ + index * FileTree::kCachedFileBytes, static_cast<std::size_t>(facts.size));
  return true;
}

void FileCache::put(std::string_view path, bool directory, std::int64_t now, const FileFacts& facts,
                    std::string_view content, std::uint32_t changes_seen) noexcept {
  if (count_ == 0 || path.size() > kPathBytes || content.size() > FileTree::kCachedFileBytes) return;
  const std::uint8_t kind = kind_of(directory, facts.form);
  const std::uint32_t hash = hash_of(path, kind);
  Locked locked(lock_);
  if (trimming_ || changes_seen != count_of_changes_.load(std::memory_order_relaxed)) return;
  Index index = look_up(path, kind, hash);
  if (index == kNone) {
    index = take_place();
    if (index == kNone) return;
    Place& place = places_[index];
    if (place.used) unchain(index);
    place.hash = hash;
    place.kind = kind;
    place.path_bytes = static_cast<std::uint8_t>(path.size());
    memcpy(place.path, path.data(), path.size());
    Index& bucket = buckets_[hash % count_];
    place.chain = bucket;
    bucket = index;
  }
  Place& place = places_[index];
  const std::size_t before = place.used ? static_cast<std::size_t>(place.facts.size) : 0;
  bytes_.store(bytes_.load(std::memory_order_relaxed) - before + content.size(), std::memory_order_relaxed);
  place.used = true;
  place.facts = facts;
  place.checked = now;
  if (!content.empty()) memcpy(contents_ + index * FileTree::kCachedFileBytes, content.data(), content.size());
  unlink(index);
  push_newest(index);
}

void FileCache::drop(std::string_view path, bool directory) noexcept {
  const std::uint8_t kind = kind_of(directory, Coding::identity);
  const std::uint32_t hash = hash_of(path, kind);
  Locked locked(lock_);
  const Index index = look_up(path, kind, hash);
  if (index == kNone) return;
  unchain(index);
  places_[index].used = false;
  bytes_.store(bytes_.load(std::memory_order_relaxed) - static_cast<std::size_t>(places_[index].facts.size),
               std::memory_order_relaxed);
  // It is the first to be used again.
  unlink(index);
  places_[index].newer = oldest_;
  (oldest_ != kNone ? places_[oldest_].older : newest_) = index;
  oldest_ = index;
}

// take_place is the least recently used place; where the ledger grants no further one, of those that it has granted.
FileCache::Index FileCache::take_place() noexcept {
  Place& oldest = places_[oldest_];
  if (!oldest.charged) oldest.charged = account::files.charge(kPlaceBytes);
  Index index = oldest_;
  while (index != kNone && !places_[index].charged) index = places_[index].newer;
  return index;
}

void FileCache::forget_all() noexcept {
  Locked locked(lock_);
  // release pairs with the acquire in count_of_changes: who sees the count opens what has taken the name.
  count_of_changes_.fetch_add(1, std::memory_order_release);
  forget();
}

void FileCache::forget() noexcept {
  for (Index i = 0; i < count_; ++i) {
    buckets_[i] = kNone;
    places_[i].used = false;
  }
  bytes_.store(0, std::memory_order_relaxed);
}

// While the pages go back, which is no work for a spinlock, nothing is found and nothing is put.
std::size_t FileCache::trim() noexcept {
  {
    Locked locked(lock_);
    if (trimming_) return 0;
    trimming_ = true;
    forget();
  }
  const bool given_back = port::give_back(contents_, count_ * FileTree::kCachedFileBytes);
  std::size_t refunded = 0;
  {
    Locked locked(lock_);
    trimming_ = false;
    for (Index i = 0; i < count_ && given_back; ++i) {
      refunded += places_[i].charged ? kPlaceBytes : 0;
      places_[i].charged = false;
    }
  }
  account::files.refund(refunded);
  return refunded;
}

FileCache::Index FileCache::look_up(std::string_view path, std::uint8_t kind, std::uint32_t hash) const noexcept {
  if (count_ == 0) return kNone;
  for (Index index = buckets_[hash % count_]; index != kNone; index = places_[index].chain) {
    const Place& place = places_[index];
    if (place.hash == hash && place.kind == kind && std::string_view(place.path, place.path_bytes) == path) {
      return index;
    }
  }
  return kNone;
}

void FileCache::unchain(Index index) noexcept {
  Index* link = &buckets_[places_[index].hash % count_];
  while (*link != index) link = &places_[*link].chain;
  *link = places_[index].chain;
}

void FileCache::unlink(Index index) noexcept {
  Place& place = places_[index];
  (place.newer != kNone ? places_[place.newer].older : newest_) = place.older;
  (place.older != kNone ? places_[place.older].newer : oldest_) = place.newer;
  place.newer = place.older = kNone;
}

void FileCache::push_newest(Index index) noexcept {
  places_[index].older = newest_;
  (newest_ != kNone ? places_[newest_].newer : oldest_) = index;
  newest_ = index;
}

FileCache::FileCache(std::size_t places) noexcept : count_(static_cast<Index>(places)) {}

FileCache* FileCache::create(std::size_t places) noexcept {
  places = std::min(places, kMostPlaces);
  const std::size_t places_at = rounded(sizeof(FileCache), alignof(Place));
  const std::size_t buckets_at = places_at + places * sizeof(Place);
  const std::size_t contents_at = rounded(buckets_at + places * sizeof(Index), kContentAlignment);
  const std::size_t bytes = contents_at + places * FileTree::kCachedFileBytes;
  auto* memory = static_cast<char*>(port::reserve(rounded(bytes, port::kPageBytes)));
  if (memory == nullptr) return nullptr;
  auto* cache = new (memory) FileCache(places);
  cache->mapped_bytes_ = rounded(bytes, port::kPageBytes);
  cache->places_ = reinterpret_cast<Place*>(memory + places_at);
  cache->buckets_ = reinterpret_cast<Index*>(memory + buckets_at);
  cache->contents_ = memory + contents_at;
  for (std::size_t i = 0; i < places; ++i) {
    new (cache->places_ + i) Place();
    cache->buckets_[i] = kNone;
    cache->push_newest(static_cast<Index>(i));
  }
  Pressure::add(cache->relief_);
  return cache;
}

void FileCache::destroy(FileCache* cache) noexcept {
  const std::size_t bytes = cache->mapped_bytes_;
  Pressure::remove(cache->relief_);
  for (Index i = 0; i < cache->count_; ++i) {
    if (cache->places_[i].charged) account::files.refund(kPlaceBytes);
  }
  std::destroy_at(cache);
  port::release(cache, bytes);
}

}  // namespace coir::http
