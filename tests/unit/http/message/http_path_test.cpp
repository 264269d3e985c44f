#include <CppUTest/TestHarness.h>
#include <coir/http/wire/path.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace http_path_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

// Resolved gives resolve_path exactly the room it asks for.
struct Resolved {
  explicit Resolved(std::string_view raw)
      : size(raw.size() + 1 < 2 ? 2 : raw.size() + 1), room(static_cast<char*>(malloc(size))) {
    memset(room, '#', size);
    path = resolve_path(raw, {room, size});
  }
  ~Resolved() { free(room); }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;

  bool is(std::string_view relative, bool directory) const {
    return path.status == 0 && path.relative == relative && path.directory == directory &&
           path.relative.data()[path.relative.size()] == '\0';
  }

  std::size_t size;
  char* room;
  ResolvedPath path;
};

bool file(std::string_view raw, std::string_view relative) {
  return Resolved(raw).is(relative, false);
}
bool directory(std::string_view raw, std::string_view relative) {
  return Resolved(raw).is(relative, true);
}
unsigned status_of(std::string_view raw) {
  return Resolved(raw).path.status;
}

}  // namespace

TEST_GROUP(HttpPath) {};

TEST(HttpPath, a_path_loses_its_leading_slash) {
  CHECK(file("/a", "a"));
  CHECK(file("/a/b.html", "a/b.html"));
}

TEST(HttpPath, the_root_is_a_dot) {
  CHECK(directory("/", "."));
  CHECK(directory("//", "."));
  CHECK(directory("/./", "."));
  CHECK(directory("/a/..", "."));
}

TEST(HttpPath, a_trailing_slash_names_a_directory) {
  CHECK(directory("/a/", "a"));
  CHECK(directory("/a/b//", "a/b"));
  CHECK(directory("/a/.", "a"));
  CHECK(directory("/a/b/..", "a"));
}

TEST(HttpPath, runs_of_slashes_count_as_one) {
  CHECK(file("///a////b", "a/b"));
}

TEST(HttpPath, dots_are_resolved_inside_the_root) {
  CHECK(file("/a/../b", "b"));
  CHECK(file("/a/./b", "a/b"));
  CHECK(file("/a/b/../../c", "c"));
  CHECK(file("/a/b/../c/./../d", "a/d"));
  CHECK(file("/abc/../d", "d"));
}

TEST(HttpPath, dots_are_resolved_when_encoded_too) {
  CHECK(file("/a/%2e%2e/b", "b"));
  CHECK(file("/a/%2E./b", "b"));
  CHECK(file("/%2e/b", "b"));
}

TEST(HttpPath, nothing_leaves_the_root) {
  for (const char* raw : {"/..", "/../", "/../a", "/a/../..", "/a/../../b", "/./..", "//..//a", "/%2e%2e", "/%2e%2e/a",
                          "/.%2e/a", "/a/%2e%2e/%2E%2E/b", "/a/b/../../../c"}) {
    LONGS_EQUAL_TEXT(400, status_of(raw), raw);
  }
}

TEST(HttpPath, names_made_of_other_dots_are_names) {
  CHECK(file("/...", "..."));
  CHECK(file("/..a", "..a"));
  CHECK(file("/a..", "a.."));
  CHECK(file("/.hidden", ".hidden"));
  CHECK(file("/.%2e.", "..."));
}

TEST(HttpPath, escapes_are_decoded_exactly_once) {
  CHECK(file("/a%20b", "a b"));
  CHECK(file("/%41%7a", "Az"));
  CHECK(file("/%2541", "%41"));
  CHECK(file("/%252e%252e/a", "%2e%2e/a"));
  CHECK(file("/%C3%a9", "\xc3\xa9"));
  CHECK(file("/a+b", "a+b"));
}

TEST(HttpPath, a_malformed_escape_is_400) {
  for (const char* raw : {"/%", "/%2", "/%2/", "/%g0", "/%0g", "/% 0", "/a%", "/%%41", "/%-1"}) {
    LONGS_EQUAL_TEXT(400, status_of(raw), raw);
  }
}

TEST(HttpPath, an_escape_cut_off_by_the_end_is_not_completed_by_what_follows) {
  LONGS_EQUAL(400, status_of({"/%41", 3}));
  LONGS_EQUAL(400, status_of({"/%41", 2}));
}

TEST(HttpPath, an_encoded_control_is_400) {
  LONGS_EQUAL(400, status_of("/a%00"));
  LONGS_EQUAL(400, status_of("/a%00.html"));
  LONGS_EQUAL(400, status_of("/%0a"));
  LONGS_EQUAL(400, status_of("/%0D"));
  LONGS_EQUAL(400, status_of("/%1f"));
  LONGS_EQUAL(400, status_of("/%7F"));
  LONGS_EQUAL(400, status_of("/a\0b"sv));
}

TEST(HttpPath, an_encoded_slash_is_404) {
  LONGS_EQUAL(404, status_of("/a%2fb"));
  LONGS_EQUAL(404, status_of("/..%2F..%2fetc"));
}

TEST(HttpPath, a_backslash_is_part_of_the_name) {
  CHECK(file("/a\\b", "a\\b"));
  CHECK(file("/..%5c..%5ca", "..\\..\\a"));
}

TEST(HttpPath, a_path_begins_with_a_slash) {
  LONGS_EQUAL(400, status_of(""));
  LONGS_EQUAL(400, status_of("a"));
  LONGS_EQUAL(400, status_of("*"));
}

TEST(HttpPath, a_path_that_may_not_fit_is_414) {
  char room[8];
  LONGS_EQUAL(0, resolve_path("/123456", room).status);
  LONGS_EQUAL(414, resolve_path("/1234567", room).status);
  LONGS_EQUAL(414, resolve_path("/", std::span(room, 1)).status);
  LONGS_EQUAL(414, resolve_path("/", std::span(room, 0)).status);
}

TEST(HttpPath, a_long_way_down_and_up_is_linear) {
  static char raw[60000];
  static char room[60001];
  for (std::size_t at = 0; at < 30000; at += 2) memcpy(raw + at, "/a", 2);
  for (std::size_t at = 30000; at < 60000; at += 3) memcpy(raw + at, "/..", 3);
  const ResolvedPath path = resolve_path({raw, sizeof raw}, room);
  LONGS_EQUAL(0, path.status);
  LONGS_EQUAL(5000 * 2 - 1, path.relative.size());
}

}  // namespace http_path_test
