// The cache of small files holds a bounded number of them, evicts the least recently used first, and serves none that is
// older than a second.

#include <CppUTest/TestHarness.h>
#include <stdio.h>
#include <string.h>

#include <cstdint>
#include <optional>

#include "net/src/http/files/file_cache.h"

namespace http_file_cache_test {

using coir::http::FileCache;
using coir::http::FileFacts;
using coir::http::FileTree;

TEST_GROUP(HttpFileCache) {
  static constexpr std::size_t kPlaces = 4;
  FileCache* cache = nullptr;
  std::optional<std::uint32_t> changes_seen;
  char content[FileTree::kCachedFileBytes];

  void setup() override {
    cache = FileCache::create(kPlaces);
    CHECK(cache != nullptr);
  }
  void teardown() override { FileCache::destroy(cache); }

  void put(std::string_view path, std::string_view text, std::int64_t now = 1, bool directory = false) {
    FileFacts facts;
    facts.size = text.size();
    cache->put(path, directory, now, facts, text, changes_seen ? *changes_seen : cache->count_of_changes());
  }
  bool holds(std::string_view path, std::string_view text, std::int64_t now = 1, bool directory = false) {
    FileFacts facts;
    return cache->find(path, directory, now, facts, content) &&
           std::string_view(content, static_cast<std::size_t>(facts.size)) == text;
  }
};

TEST(HttpFileCache, gives_back_what_was_put) {
  put("a", "content of a");
  put("b", "");
  CHECK(holds("a", "content of a"));
  CHECK(holds("b", ""));
  CHECK_FALSE(holds("c", ""));
  LONGS_EQUAL(12, cache->bytes());
}

TEST(HttpFileCache, a_file_and_a_directory_of_one_name_are_two) {
  put("a", "file");
  put("a", "index", 1, true);
  CHECK(holds("a", "file"));
  CHECK(holds("a", "index", 1, true));
}

TEST(HttpFileCache, an_entry_that_was_not_checked_in_this_second_is_not_returned) {
  put("a", "old", 1);
  CHECK_FALSE(holds("a", "old", 2));
  put("a", "new", 2);
  CHECK(holds("a", "new", 2));
  LONGS_EQUAL(3, cache->bytes());
}

TEST(HttpFileCache, a_file_that_was_opened_before_a_change_is_not_kept) {
  changes_seen = cache->count_of_changes();
  put("a", "before");
  CHECK(holds("a", "before"));
  cache->forget_all();
  put("a", "before");
  CHECK_FALSE(holds("a", "before"));
  changes_seen = cache->count_of_changes();
  put("a", "behind");
  CHECK(holds("a", "behind"));
}

TEST(HttpFileCache, the_least_recently_used_makes_room) {
  for (const char* path : {"a", "b", "c", "d"}) put(path, path);
  CHECK(holds("a", "a"));
  put("e", "e");
  CHECK_FALSE(holds("b", "b"));
  for (const char* path : {"a", "c", "d", "e"}) CHECK_TEXT(holds(path, path), path);
  LONGS_EQUAL(4, cache->bytes());
}

TEST(HttpFileCache, dropped_places_are_used_again_first) {
  for (const char* path : {"a", "b", "c", "d"}) put(path, path);
  cache->drop("c", false);
  cache->drop("unknown", false);
  CHECK_FALSE(holds("c", "c"));
  LONGS_EQUAL(3, cache->bytes());
  put("e", "e");
  for (const char* path : {"a", "b", "d", "e"}) CHECK_TEXT(holds(path, path), path);
}

TEST(HttpFileCache, long_paths_and_large_files_are_not_kept) {
  char path[FileCache::kPathBytes + 1];
  memset(path, 'p', sizeof path);
  put({path, sizeof path}, "x");
  CHECK_FALSE(holds({path, sizeof path}, "x"));
  put({path, sizeof path - 1}, "x");
  CHECK(holds({path, sizeof path - 1}, "x"));
  static char large[FileTree::kCachedFileBytes + 1];
  put("large", {large, sizeof large});
  CHECK_FALSE(holds("large", {large, sizeof large}));
  put("largest", {large, sizeof large - 1});
  CHECK(holds("largest", {large, sizeof large - 1}));
}

TEST(HttpFileCache, holds_its_promises_through_many_changes) {
  // Against a model: which of eight paths were used last.
  char last[8][16] = {};
  unsigned seed = 1;
  for (int step = 0; step < 20000; ++step) {
    seed = seed * 1103515245u + 12345u;
    const unsigned which = (seed >> 16) % 8;
    char path[2] = {static_cast<char>('a' + which), '\0'};
    switch ((seed >> 8) % 3) {
      case 0:
        snprintf(last[which], sizeof last[which], "%d", step);
        put(path, last[which]);
        CHECK(holds(path, last[which]));
        break;
      case 1: {
        FileFacts facts;
        if (cache->find(path, false, 1, facts, content)) {
          CHECK(std::string_view(content, static_cast<std::size_t>(facts.size)) == last[which]);
        }
        break;
      }
      default:
        cache->drop(path, false);
        CHECK_FALSE(holds(path, last[which]));
    }
    CHECK(cache->bytes() <= kPlaces * 5);
  }
}

TEST(HttpFileCache, nothing_at_all_is_kept_like_an_empty_file) {
  put("a", std::string_view());
  CHECK(holds("a", ""));
  put("a", "something");
  put("a", std::string_view());
  CHECK(holds("a", ""));
  LONGS_EQUAL(0, cache->bytes());
}

TEST(HttpFileCache, a_file_of_the_year_9999_or_of_long_ago_has_a_tag_and_a_date) {
  constexpr std::int64_t kNow = 1'800'000'000;
  struct stat info = {};
  info.st_mtim.tv_nsec = 999'999'999;
  info.st_mtim.tv_sec = 253'402'300'799;
  const FileFacts late = FileFacts::of(info, "text/plain", kNow);
  CHECK(late.etag.weak());
  CHECK(late.all_lines().find("Last-Modified: Fri, 15 Jan 2027 08:00:00 GMT\r\n") != std::string_view::npos);
  info.st_mtim.tv_sec = -62'167'219'200;
  const FileFacts early = FileFacts::of(info, "text/plain", kNow);
  CHECK_FALSE(early.etag.weak());
  CHECK(early.all_lines().find("Last-Modified: Sat, 01 Jan 0000 00:00:00 GMT\r\n") != std::string_view::npos);
}

TEST(HttpFileCache, without_places_it_keeps_nothing) {
  FileCache* none = FileCache::create(0);
  FileFacts facts;
  none->put("a", false, 1, facts, "", 0);
  CHECK_FALSE(none->find("a", false, 1, facts, content));
  none->drop("a", false);
  FileCache::destroy(none);
}

}  // namespace http_file_cache_test
