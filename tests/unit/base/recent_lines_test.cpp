// The latest lines of the log, kept for those who ask: their levels, sources and rates.

#include <coir/net/log_line.h>

#include <CppUTest/TestHarness.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/child.h"

namespace recent_lines_test {

using coir::keep_log_lines;
using coir::kMostKeptOfLine;
using coir::kRecentLogBytes;
using coir::log_line;
using coir::LogLevel;
using coir::LogReader;
using coir::LogSource;
using coir::recent_log_lines;
using std::chrono::hours;

TEST_GROUP(RecentLines) {
  int kept = -1;
  char room[kRecentLogBytes];
  char text[kMostKeptOfLine];
  std::uint64_t start = 0;

  void setup() override {
    kept = dup(2);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    close(nowhere);
    LogReader reader;
    while (reader.read(text)) {
    }
    start = std::max<std::uint64_t>(1, reader.next());
  }
  void teardown() override {
    keep_log_lines(false);
    coir::set_log_level(LogLevel::info);
    dup2(kept, 2);
    close(kept);
  }
  bool holds(std::string_view part) { return recent_log_lines(room).find(part) != std::string_view::npos; }
  // count tells how many lines since the start of the test are of a source.
  int count(std::string_view source, LogLevel least = LogLevel::info) {
    LogReader reader(start, least);
    int found = 0;
    while (const auto line = reader.read(text)) found += line->source == source;
    return found;
  }
};

TEST(RecentLines, are_kept_from_when_that_was_asked_for_until_it_is_no_more) {
  log_line("before\n");
  CHECK_FALSE(holds("before"));
  keep_log_lines(true);
  log_line("first\n");
  log_line("second\n");
  const std::string_view all = recent_log_lines(room);
  CHECK_TRUE(all.find("first") < all.find("second"));
  CHECK_TRUE(all.find("second") != all.npos);
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
  const std::string_view all = recent_log_lines(room);
  CHECK_TRUE(all.starts_with("t="));
  CHECK_TRUE(all.ends_with("msg=\"line number 999 of a thousand\"\n"));
  CHECK_TRUE(all.size() > kRecentLogBytes - 128);
  CHECK_FALSE(holds("number 1 of"));
}

TEST(RecentLines, a_smaller_room_gets_the_latest_whole_lines) {
  keep_log_lines(true);
  log_line("one line\n");
  log_line("another\n");
  log_line("the last\n");
  const std::string_view latest = recent_log_lines({room, 100});
  CHECK_TRUE(latest.starts_with("t=") && latest.ends_with(" level=notice source=program msg=\"the last\"\n"));
  CHECK_TRUE(std::ranges::count(latest, '\n') == 1);
  CHECK_TRUE(recent_log_lines({room, 3}).empty());
}

TEST(RecentLines, a_reader_counts_those_that_are_gone) {
  keep_log_lines(true);
  LogReader reader(start);
  log_line("one\n");
  CHECK_TRUE(reader.read(text)->text == "one");
  LONGS_EQUAL(0, reader.lost());
  for (int i = 0; i < 1000; ++i) log_line("one of a thousand lines\n");
  int found = 0;
  while (reader.read(text)) ++found;
  CHECK_TRUE(found > 100);
  LONGS_EQUAL(1000, reader.lost() + static_cast<std::uint64_t>(found));
  LONGS_EQUAL(start + 1001, reader.next());
}

TEST(RecentLines, a_line_that_is_too_long_is_cut) {
  keep_log_lines(true);
  static char much[kRecentLogBytes + 2];
  memset(much, 'x', sizeof much);
  log_line("kept\n");
  log_line({much, sizeof much});
  CHECK_TRUE(holds("\"kept\"\n"));
  LogReader reader(start + 1);
  LONGS_EQUAL(kMostKeptOfLine, reader.read(text)->text.size());
}

// In a process of its own, for long lines stay among those of the other tests.
TEST(RecentLines, a_source_that_floods_the_log_pushes_out_its_own_lines_alone) {
  const auto end = coir::test::in_child([this] {
    static LogSource clients("clients"), others("quiet");
    keep_log_lines(true);
    static char half[kMostKeptOfLine];
    memset(half, 'h', sizeof half);
    log_line(others, LogLevel::warning, {half, 1500});
    log_line(others, LogLevel::warning, "the cause\n");
    for (int i = 0; i < 2000; ++i) log_line(clients, LogLevel::info, "a request that anyone can make\n");
    if (count("quiet") != 2 || count("clients") < 50) return 1;
    // Lines as long as they may be push out no more.
    for (int i = 0; i < 20; ++i) log_line(clients, LogLevel::info, {half, sizeof half});
    return count("quiet") == 2 && count("clients") >= 2 ? 0 : 2;
  });
  LONGS_EQUAL(0, end.status);
}

TEST(RecentLines, a_source_beyond_its_rate_is_left_out_and_the_next_line_says_how_much) {
  static LogSource logins("logins", {.burst = 5, .spacing = hours(1)}), free("free");
  keep_log_lines(true);
  const std::uint64_t before = coir::log_lines_left_out();
  for (int i = 0; i < 35; ++i) log_line(logins, LogLevel::warning, "a wrong token\n");
  LONGS_EQUAL(5, count("logins"));
  LONGS_EQUAL(30, coir::log_lines_left_out() - before);
  for (int i = 0; i < 35; ++i) log_line(free, LogLevel::info, "free\n");
  LONGS_EQUAL(35, count("free"));
}

TEST(RecentLines, a_rate_that_opens_again_says_how_many_were_left_out) {
  static LogSource often("often", {.burst = 2, .spacing = std::chrono::milliseconds(20)});
  keep_log_lines(true);
  // Until one is left out, however slow the machine is, and then until one is let in.
  while (log_line(often, LogLevel::notice, "again\n")) {
  }
  unsigned long left_out = 1;
  while (!log_line(often, LogLevel::notice, "open\n")) ++left_out;
  char wanted[80];
  snprintf(wanted, sizeof wanted, "\"%lu lines of source often were left out: too many\"", left_out);
  CHECK_TRUE(holds(wanted));
}

TEST(RecentLines, lines_below_the_level_are_in_no_log) {
  static LogSource source("levels");
  keep_log_lines(true);
  coir::set_log_level(LogLevel::warning);
  CHECK_FALSE(log_line(source, LogLevel::info, "info\n"));
  CHECK_FALSE(log_line(source, LogLevel::notice, "notice\n"));
  CHECK_TRUE(log_line(source, LogLevel::warning, "warning\n"));
  CHECK_TRUE(log_line(source, LogLevel::error, "error\n"));
  LONGS_EQUAL(2, count("levels"));
  LONGS_EQUAL(1, count("levels", LogLevel::error));
  CHECK_TRUE(coir::log_level_of("warning") == LogLevel::warning);
  CHECK_FALSE(coir::log_level_of("loud").has_value());
}

TEST(RecentLines, a_value_with_quotes_blanks_and_controls_is_one_line_and_reads_back) {
  static LogSource source("bytes");
  keep_log_lines(true);
  log_line(source, LogLevel::info, "prefix: say \"a b\" \\ \x1b[2J\r level=error\n", 8);
  const std::string_view all = recent_log_lines(room);
  CHECK_TRUE(all.ends_with(" level=info source=bytes msg=\"say \\\"a b\\\" \\\\ \\u001b[2J\\r level=error\"\n"));
}

TEST(RecentLines, the_time_is_utc_whatever_the_year) {
  const auto time = [](std::int64_t seconds) {
    static char memory[coir::LogRecord::kTimeBytes];
    return coir::LogRecord{.unix_seconds = seconds, .source = "", .text = ""}.time(memory);
  };
  CHECK_TRUE(time(0) == "1970-01-01T00:00:00Z");
  CHECK_TRUE(time(1'709'210'096) == "2024-02-29T12:34:56Z");
  CHECK_TRUE(time(4'294'967'295) == "2106-02-07T06:28:15Z");
}

// In a process of its own, for a place that is taken stays so.
TEST(RecentLines, more_sources_than_places_share_the_last) {
  const auto end = coir::test::in_child([this] {
    keep_log_lines(true);
    static LogSource many[] = {LogSource("a"), LogSource("b"), LogSource("c"), LogSource("d"), LogSource("e"),
                               LogSource("f"), LogSource("g"), LogSource("h"), LogSource("i"), LogSource("j"),
                               LogSource("k"), LogSource("l"), LogSource("m"), LogSource("n"), LogSource("o"),
                               LogSource("p"), LogSource("q"), LogSource("r")};
    for (LogSource& each : many) log_line(each, LogLevel::info, "one\n");
    return count("a") + count("others");
  });
  CHECK_TRUE(end.status >= 4 && end.status <= 18);
}

}  // namespace recent_lines_test
