// The latest lines of the log, kept for whoever asks.

#include <coir/net/log_line.h>

#include <CppUTest/TestHarness.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace recent_lines_test {

using coir::keep_log_lines;
using coir::kRecentLogBytes;
using coir::log_line;
using coir::recent_log_lines;

TEST_GROUP(RecentLines) {
  int kept = -1;
  char room[kRecentLogBytes];

  void setup() override {
    kept = dup(2);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    close(nowhere);
  }
  void teardown() override {
    keep_log_lines(false);
    dup2(kept, 2);
    close(kept);
  }
  bool holds(std::string_view text) { return recent_log_lines(room).find(text) != std::string_view::npos; }
};

TEST(RecentLines, are_kept_from_when_that_was_asked_for_until_it_is_no_more) {
  log_line("before\n");
  CHECK_FALSE(holds("before"));
  keep_log_lines(true);
  log_line("first\n");
  log_line("second\n");
  CHECK_TRUE(holds("first\nsecond\n"));
  keep_log_lines(false);
  log_line("after\n");
  CHECK_FALSE(holds("after"));
}

TEST(RecentLines, the_oldest_make_room_and_lines_are_whole) {
  keep_log_lines(true);
  char line[64];
  for (int i = 0; i < 1000; ++i) {
    snprintf(line, sizeof line, "line number %d of a thousand\n", i);
    log_line(line);
  }
  const std::string_view text = recent_log_lines(room);
  CHECK_TRUE(text.starts_with("line number "));
  CHECK_TRUE(text.ends_with("line number 999 of a thousand\n"));
  CHECK_TRUE(text.size() > kRecentLogBytes - 64);
  CHECK_FALSE(holds("number 1 of"));
}

TEST(RecentLines, a_smaller_room_gets_the_latest_whole_lines) {
  keep_log_lines(true);
  log_line("one line\n");
  log_line("another\n");
  log_line("the last\n");
  char small[20];
  const std::string_view text = recent_log_lines(small);
  CHECK_TRUE(text == "another\nthe last\n" || text == "the last\n");
  CHECK_TRUE(recent_log_lines({small, 3}).empty());
}

TEST(RecentLines, their_numbers_count_those_that_are_gone) {
  keep_log_lines(true);
  std::uint64_t before = 0, first = 0;
  const std::string_view old = recent_log_lines(room, &before);
  const std::uint64_t next = before + static_cast<std::uint64_t>(std::ranges::count(old, '\n'));
  for (int i = 0; i < 1000; ++i) log_line("one of a thousand lines\n");
  std::string_view text = recent_log_lines(room, &first);
  LONGS_EQUAL(next + 1000, first + static_cast<std::uint64_t>(std::ranges::count(text, '\n')));
  CHECK_TRUE(first > next);
  text = recent_log_lines({room, 30}, &first);
  CHECK_TRUE(text == "one of a thousand lines\n");
  LONGS_EQUAL(next + 999, first);
  CHECK_TRUE(recent_log_lines({room, 3}, &first).empty());
  LONGS_EQUAL(next + 1000, first);
}

TEST(RecentLines, a_line_that_fits_nowhere_is_left_out) {
  keep_log_lines(true);
  static char much[kRecentLogBytes + 2];
  memset(much, 'x', sizeof much);
  log_line("kept\n");
  log_line({much, sizeof much});
  CHECK_TRUE(holds("kept\n"));
}

}  // namespace recent_lines_test
