#pragma once

#include <coir/http/files.h>
#include <coir/http/wire/date.h>
#include <coir/http/wire/representation.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/turn.h"

namespace coir::http {

// FileFacts is what a response says of a file. It owns nothing.
struct FileFacts {
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // seconds since 1970
  ETag etag;

  // The header lines that are the same in every response: the validators first, then the type and what ranges it takes.
  std::string_view validator_lines() const noexcept { return {lines_, validator_bytes_}; }
  std::string_view all_lines() const noexcept { return {lines_, line_bytes_}; }

  // has_more tells whether a response says more than the lines: of its form, of what it varies by, or for caches.
  bool has_more() const noexcept { return (static_cast<unsigned>(varies) | cache_rule) != 0; }

  // of a file, whose type is `media_type`, at `now` (seconds).
  static FileFacts of(const struct stat& info, std::string_view media_type, std::int64_t now,
                      Coding form = Coding::identity) noexcept;

  Codings others = 0;              // of the plain file: the compressed forms that lie beside it
  Coding form = Coding::identity;  // in which the content lies there
  bool varies = false;             // what is sent depends on the codings that the client accepts
  std::uint8_t cache_rule = 0;     // the number of FileTreeOptions::cache that fits the path, from 1 on; 0: none

 private:
  std::uint8_t validator_bytes_ = 0;
  std::uint8_t line_bytes_ = 0;
  char lines_[226];
};

// FileCache keeps the content of small files that were asked for lately, least recently used out first. Its memory is
// reserved at the start: a fixed number of places of kCachedFileBytes each, touched as far as they are used. A place is
// found by the path below the root; long paths are not kept. From several workers at once.
class FileCache {
 public:
  static constexpr std::size_t kPathBytes = 120;

  // create returns nullptr when the memory cannot be had.
  static FileCache* create(std::size_t places) noexcept;
  static void destroy(FileCache* cache) noexcept;

  // find copies facts and content out, if the file was looked at in this second. `directory` tells paths apart that
  // name a file from those that name a directory's index, `form` the compressed forms of a file from the plain one.
  // `content` has room for kCachedFileBytes.
  bool find(std::string_view path, bool directory, std::int64_t now, FileFacts& facts, std::span<char> content,
            Coding form = Coding::identity) noexcept;

  // put keeps a file, by the form that `facts` names, that was looked at now: in the place of its older state or of the
  // least recently used. `changes_seen` was count_of_changes before the file was opened: it may be one that a change has
  // replaced since, and is not kept then.
  void put(std::string_view path, bool directory, std::int64_t now, const FileFacts& facts, std::string_view content,
           std::uint32_t changes_seen) noexcept;
  std::uint32_t count_of_changes() const noexcept { return count_of_changes_.load(std::memory_order_acquire); }

  // drop forgets a path that has no such file any more. Its compressed forms are not found any more without it.
  void drop(std::string_view path, bool directory) noexcept;

  // forget_all forgets every path, after something has changed, and keeps the memory.
  void forget_all() noexcept;

  // trim forgets everything and gives the memory back. Returns how many bytes that refunds.
  std::size_t trim() noexcept;

  // One change to the tree after the other takes its name, so that what its preconditions saw still holds then.
  TurnLock changes;

  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Index = std::uint16_t;
  static constexpr Index kNone = 0xffff;
  static constexpr std::size_t kMostPlaces = 4096;

  struct Place {
    FileFacts facts;
    std::int64_t checked = 0;  // second in which the file was last looked at
    std::uint32_t hash = 0;
    Index chain = kNone;  // next of the same bucket
    Index newer = kNone;
    Index older = kNone;
    bool used = false;
    bool charged = false;   // it has had content, and the ledger knows
    std::uint8_t kind = 0;  // of path and form: kind_of
    std::uint8_t path_bytes = 0;
    char path[kPathBytes];
  };

  explicit FileCache(std::size_t places) noexcept;

  // These need the lock.
  Index look_up(std::string_view path, std::uint8_t kind, std::uint32_t hash) const noexcept;
  void unchain(Index index) noexcept;
  void unlink(Index index) noexcept;
  void push_newest(Index index) noexcept;
  Index take_place() noexcept;
  void forget() noexcept;

  std::size_t mapped_bytes_ = 0;
  Place* places_ = nullptr;
  Index* buckets_ = nullptr;  // as many as places
  char* contents_ = nullptr;
  Index count_ = 0;
  Relief relief_{Pressure::caches,
                 [](void* self, std::size_t) noexcept { return static_cast<FileCache*>(self)->trim(); }, this};

  Spinlock lock_;
  bool trimming_ = false;
  Index newest_ = kNone;
  Index oldest_ = kNone;
  Atomic<std::size_t> bytes_ = 0;
  Atomic<std::uint32_t> count_of_changes_ = 0;
};

}  // namespace coir::http
