// Which files a rule of --cache fits.

#include <CppUTest/TestHarness.h>

#include <string_view>

#include "net/src/http/files/glob.h"

namespace http_glob_test {

using coir::http::matches_glob;

TEST_GROUP(HttpGlob) {};

TEST(HttpGlob, a_pattern_without_a_slash_fits_the_name) {
  CHECK_TRUE(matches_glob("*.css", "a.css"));
  CHECK_TRUE(matches_glob("*.css", "deep/down/a.css"));
  CHECK_FALSE(matches_glob("*.css", "a.css.map"));
  CHECK_FALSE(matches_glob("*.css", "css"));
  CHECK_TRUE(matches_glob("index.html", "dir/index.html"));
  CHECK_FALSE(matches_glob("dir", "dir/index.html"));
  CHECK_TRUE(matches_glob("*", "any/thing"));
}

TEST(HttpGlob, one_with_a_slash_in_front_fits_the_whole_path) {
  CHECK_TRUE(matches_glob("/docs/*", "docs/a/b.html"));
  CHECK_FALSE(matches_glob("/docs/*", "other/docs/a"));
  CHECK_FALSE(matches_glob("/docs/*", "docs"));
  CHECK_TRUE(matches_glob("/a.txt", "a.txt"));
  CHECK_FALSE(matches_glob("/a.txt", "b/a.txt"));
  CHECK_TRUE(matches_glob("/*/x?z/*.js", "a/b/xyz/app.js"));
}

TEST(HttpGlob, stars_and_question_marks) {
  CHECK_TRUE(matches_glob("app-????.js", "app-12ab.js"));
  CHECK_FALSE(matches_glob("app-????.js", "app-12abc.js"));
  CHECK_TRUE(matches_glob("a*b*c", "aXbXbc"));
  CHECK_FALSE(matches_glob("a*b*c", "aXbXbd"));
  CHECK_TRUE(matches_glob("***", ""));
  CHECK_FALSE(matches_glob("?", ""));
  CHECK_FALSE(matches_glob("", "a"));
}

TEST(HttpGlob, many_stars_cost_no_more_than_pattern_times_path) {
  char path[4096];
  for (char& c : path) c = 'a';
  // Backtracking over each star would not end.
  CHECK_FALSE(matches_glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", {path, sizeof path}));
}

}  // namespace http_glob_test
