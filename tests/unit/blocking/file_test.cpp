#include <coir/config.h>
#include <coir/file.h>
#include <coir/program.h>

#include <CppUTest/TestHarness.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/folder.h"

namespace file_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::File;
using coir::FileLines;
using coir::replace_file;
using coir::test::Folder;
using coir::test::holds;
using coir::test::mode_of;
using coir::test::put;
using coir::test::SmallDisk;
using namespace std::chrono_literals;

namespace {

constinit coir::Account texts("texts");

}  // namespace

TEST_GROUP_BASE(File, coir::test::BothSides) {};

TEST(File, a_missing_one_is_an_error_with_its_errno) {
  both_sides([&] {
    Folder folder;
    const auto file = File::open(folder.at("none"));
    expect(!file && file.error() == ErrorCode::not_found && file.error().sys == ENOENT);
  });
}

TEST(File, is_read_in_parts_and_whole) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "0123456789");
    auto file = File::open(folder.at("a"));
    expect(file.has_value());
    char part[4];
    expect(file->read_at(part, 3).value_or(0) == 4 && memcmp(part, "3456", 4) == 0);
    expect(file->read_at(part, 8).value_or(0) == 2);
    const auto past = file->read_at(part, 10);
    expect(!past && past.error() == ErrorCode::end_of_stream);
    expect(file->read_at({}, 10).value_or(9) == 0);
    char whole[10];
    expect(file->read_all(whole).value_or(0) == 10 && memcmp(whole, "0123456789", 10) == 0);
    char short_of_one[9];
    const auto long_file = file->read_all(short_of_one);
    expect(!long_file && long_file.error() == ErrorCode::limit);
    expect(file->size().value_or(0) == 10);
  });
}

TEST(File, read_into_memory_is_charged_while_it_is_kept_and_bounded) {
  both_sides([&] {
    Folder folder;
    char many[5000];
    memset(many, 'm', sizeof many);
    put(folder.at("a"), {many, sizeof many});
    auto file = File::open(folder.at("a"));
    {
      auto bytes = file->read_all(texts, 5000);
      expect(bytes && bytes->text() == std::string_view(many, sizeof many));
      expect(texts.used() >= 5000);
    }
    expect(texts.used() == 0);
    const auto beyond = file->read_all(texts, 4999);
    expect(!beyond && beyond.error() == ErrorCode::limit);
    texts.set_ceiling(4000);
    const auto refused = file->read_all(texts, 5000);
    texts.set_ceiling(SIZE_MAX);
    expect(!refused && refused.error() == ErrorCode::limit);
    expect(texts.used() == 0);
  });
}

TEST(File, one_that_tells_no_size_is_read_whole_too) {
  both_sides([&] {
    auto file = File::open("/proc/self/smaps");
    if (!file) file = File::open("/proc/self/status");
    const auto bytes = file->read_all(texts, 1 << 20);
    expect(bytes && bytes->size() > 512);
  });
}

TEST(File, slurped_text_is_utf8_or_an_error) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "caf\xc3\xa9 \xf0\x9f\xa5\xa5\n");
    const auto text = coir::slurp(folder.at("a"), texts, 100);
    expect(text && text->text() == "caf\xc3\xa9 \xf0\x9f\xa5\xa5\n");
    char room[11];
    const auto here = coir::slurp(folder.at("a"), room);
    expect(here && *here == "caf\xc3\xa9 \xf0\x9f\xa5\xa5\n" && here->data() == room);
    const auto beyond = coir::slurp(folder.at("a"), texts, 10);
    const auto too_long = coir::slurp(folder.at("a"), std::span(room).first(10));
    expect(!beyond && beyond.error() == ErrorCode::limit && !too_long && too_long.error() == ErrorCode::limit);
    // A stray byte, a character cut off, an overlong one, a surrogate, and one above the last.
    for (const std::string_view bad :
         {std::string_view("0123456789\xff"), std::string_view("0123456789\xc3"), std::string_view("\xc0\xaf"),
          std::string_view("\xed\xa0\x80"), std::string_view("\xf4\x90\x80\x80")}) {
      put(folder.at("b"), bad);
      const auto refused = coir::slurp(folder.at("b"), texts, 100);
      const auto refused_here = coir::slurp(folder.at("b"), room);
      expect(!refused && refused.error() == ErrorCode::invalid && refused.error().sys == EILSEQ);
      expect(!refused_here && refused_here.error() == ErrorCode::invalid);
    }
    const auto none = coir::slurp(folder.at("none"), texts, 100);
    expect(!none && none.error().sys == ENOENT);
    expect(coir::slurp("/dev/null", texts, 100)->text().empty());
  });
  LONGS_EQUAL(0, texts.used());
}

TEST(File, is_written_and_appended_to) {
  both_sides([&] {
    Folder folder;
    auto file = File::open(folder.at("a"), {.write = true, .create = true, .mode = 0600});
    expect(file && file->write_all(std::string_view("one ")).has_value());
    expect(file->write_all(std::string_view("two")).has_value());
    expect(file->sync().has_value());
    expect(file->close().has_value() && !file->is_open());
    expect(holds(folder.at("a"), "one two") && mode_of(folder.at("a")) == 0600);
    expect(coir::append_to(folder.at("a"), std::string_view(" three")).has_value());
    expect(holds(folder.at("a"), "one two three"));
    const auto again = File::open(folder.at("a"), {.write = true, .create = true, .exclusive = true});
    expect(!again && again.error().sys == EEXIST);
  });
}

TEST(File, opened_to_write_cannot_be_read_unless_that_is_asked_for) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "here");
    char part[4];
    auto writing = File::open(folder.at("a"), {.write = true});
    expect(writing && writing->read_at(part, 0).error_or(Error{}).sys == EBADF);
    auto appending = File::open(folder.at("a"), {.append = true});
    expect(appending && appending->read_at(part, 0).error_or(Error{}).sys == EBADF);
    auto both = File::open(folder.at("a"), {.read = true, .write = true});
    expect(both && both->write_all(std::string_view("th")).has_value());
    expect(both->read_at(part, 0).value_or(0) == 4 && memcmp(part, "thre", 4) == 0);
    auto reading = File::open(folder.at("a"), {});
    expect(reading && reading->write_all(std::string_view("x")).error_or(Error{}).sys == EBADF);
  });
}

TEST(File, descriptors_are_not_inherited_and_do_not_outlive_it) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "a");
    int fd = -1;
    {
      auto file = File::open(folder.at("a"));
      fd = file->fd();
      expect((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    }
    expect(fcntl(fd, F_GETFD) == -1);
  });
}

TEST(File, a_full_disk_is_an_error_with_its_errno) {
  both_sides([&] {
    Folder folder;
    static char many[100'000];
    SmallDisk disk(70'000);
    auto file = File::open(folder.at("a"), {.write = true, .create = true});
    const auto written = file->write_all(many);
    expect(!written && written.error().sys == EFBIG);
  });
}

TEST(File, work_ends_between_two_pieces_at_the_deadline) {
  both_sides([&] {
    Folder folder;
    static char many[1 << 20];
    put(folder.at("a"), std::string_view(many, sizeof many));
    auto file = File::open(folder.at("a"));
    const auto late = file->read_at(many, 0, Deadline::now());
    expect(!late && late.error() == ErrorCode::timed_out);
  });
}

TEST(File, lines_come_one_by_one_and_one_that_is_too_long_is_told_and_passed_over) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "one\n\nthree is longer than the buffer of this test\nfour\nfive");
    auto file = File::open(folder.at("a"));
    char buffer[16];
    FileLines lines(*file, buffer);
    expect(lines.next().value_or("?") == "one");
    expect(lines.next().value_or("?") == "");
    const auto third = lines.next();
    expect(!third && third.error() == ErrorCode::limit);
    expect(lines.next().value_or("?") == "four");
    expect(lines.next().value_or("?") == "five");
    for (int i = 0; i < 2; ++i) {
      const auto end = lines.next();
      expect(!end && end.error() == ErrorCode::end_of_stream);
    }
  });
}

#if !COIR_NO_ASYNC
TEST(File, a_cancelled_fiber_reads_and_replaces_nothing) {
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               Folder folder;
               put(folder.at("a"), "old");
               coir::shutdown();
               const auto cut = replace_file(folder.at("a"), std::string_view("new"));
               expect(!cut && cut.error() == ErrorCode::cancelled);
               expect(holds(folder.at("a"), "old") && folder.count() == 1);
             }).has_value());
  check();
}
#endif

}  // namespace file_test
