#include <coir/file.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/folder.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"

namespace file_replace_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::FileReplacement;
using coir::replace_file;
using coir::test::Folder;
using coir::test::holds;
using coir::test::mode_of;
using coir::test::put;
using coir::test::SmallDisk;

// A file is replaced whole or not at all.
TEST_GROUP_BASE(FileReplace, coir::test::BothSides) {};

TEST(FileReplace, replacing_leaves_the_new_content_alone_and_keeps_the_mode) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "the old content", 0640);
    expect(replace_file(folder.at("a"), std::string_view("new")).has_value());
    expect(holds(folder.at("a"), "new") && mode_of(folder.at("a")) == 0640);
    expect(replace_file(folder.at("a"), std::string_view("newer"), 0604).has_value());
    expect(holds(folder.at("a"), "newer") && mode_of(folder.at("a")) == 0604);
    expect(replace_file(folder.at("b"), std::string_view("first")).has_value());
    expect(holds(folder.at("b"), "first") && mode_of(folder.at("b")) == 0644);
    expect(folder.count() == 2);
  });
}

TEST(FileReplace, a_file_is_removed_by_itself_and_what_is_not_there_or_no_file_is_an_error) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "content", 0640);
    put(folder.at("b"), "content", 0640);
    expect(coir::remove_file(folder.at("a")).has_value() && folder.count() == 1);
    const auto again = coir::remove_file(folder.at("a"));
    expect(!again && again.error() == ErrorCode::not_found);
    expect(!coir::remove_file(folder.at(".")) && folder.count() == 1);
  });
}

TEST(FileReplace, the_new_content_takes_a_date) {
  both_sides([&] {
    Folder folder;
    auto next = FileReplacement::begin(folder.at("a"));
    expect(next.has_value() && next->write(std::string_view("new")).has_value());
    expect(next->date_from({.tv_sec = 1'000'000'000, .tv_nsec = 0}).has_value() && next->commit().has_value());
    struct stat status;
    expect(::stat(folder.at("a"), &status) == 0 && status.st_mtim.tv_sec == 1'000'000'000);
    const auto late = next->date_from({});
    expect(!late && late.error() == ErrorCode::closed);
  });
}

TEST(FileReplace, in_an_open_folder_a_name_is_replaced_and_no_other_path_looked_up) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "the old content", 0640);
    const int fd = open(folder.at("."), O_PATH | O_DIRECTORY);
    auto next = FileReplacement::begin_at(fd, "a");
    expect(next.has_value());
    expect(next->write(std::string_view("new")).has_value() && holds(folder.at("a"), "the old content"));
    expect(next->commit().has_value());
    expect(holds(folder.at("a"), "new") && mode_of(folder.at("a")) == 0640 && folder.count() == 1);
    for (const std::string_view name : {std::string_view("../b"), std::string_view("b/"), std::string_view(""),
                                        std::string_view("."), std::string_view(".."), std::string_view("b\0c", 3)}) {
      const auto refused = FileReplacement::begin_at(fd, name);
      expect(!refused && refused.error() == ErrorCode::invalid);
    }
    expect(folder.count() == 1);
    close(fd);
  });
}

// The path is walked in pieces of a name's length: here one ends within a name, one behind a slash, and slashes are doubled.
TEST(FileReplace, a_path_may_be_longer_than_a_name) {
  both_sides([&] {
    Folder folder;
    char path[2048];
    char* end = stpcpy(path, folder.at("a"));
    for (const std::size_t bytes : {200, 200, 60, 255, 1}) {
      expect(mkdir(path, 0755) == 0);
      end = stpcpy(end, bytes == 200 ? "/" : "//");
      memset(end, 'n', bytes);
      *(end += bytes) = '\0';
    }
    expect(replace_file(path, std::string_view("new")).has_value() && holds(path, "new"));
    expect(coir::remove_file(path).has_value() && access(path, F_OK) != 0);
    // A name of 256 bytes in the middle is one too long.
    memset(end, 'n', 256);
    stpcpy(end + 256, "/a");
    const auto refused = replace_file(path, std::string_view("new"));
    expect(!refused && refused.error().sys == ENAMETOOLONG);
  });
}

TEST(FileReplace, a_replacement_that_fails_leaves_the_old_file_and_nothing_else) {
  both_sides([&] {
    Folder folder;
    static char many[100'000];
    put(folder.at("a"), "the old content");
    {
      SmallDisk disk(70'000);
      const auto full = replace_file(folder.at("a"), many);
      expect(!full && full.error().sys == EFBIG);
    }
    const auto late = replace_file(folder.at("a"), many, std::nullopt, Deadline::now());
    expect(!late && late.error() == ErrorCode::timed_out);
    expect(holds(folder.at("a"), "the old content"));
    expect(folder.count() == 1);
    const auto nowhere = replace_file(folder.at("none/b"), many);
    expect(!nowhere && nowhere.error().sys == ENOENT);
    const auto onto_folder = replace_file(folder.at("."), many);
    expect(!onto_folder);
    expect(folder.count() == 1);
  });
}

TEST(FileReplace, one_piece_by_piece_takes_the_name_at_its_commit) {
  both_sides([&] {
    Folder folder;
    const int before = coir::test::count_fds();
    put(folder.at("a"), "the old content", 0640);
    auto next = FileReplacement::begin(folder.at("a"));
    expect(next && next->is_open());
    expect(next->write(std::string_view("one ")).has_value());
    FileReplacement moved = std::move(*next);
    expect(moved.write(std::string_view("two")).has_value() && !next->is_open());
    expect(holds(folder.at("a"), "the old content") && folder.count() == 2);
    expect(moved.commit().has_value() && !moved.is_open());
    expect(holds(folder.at("a"), "one two") && mode_of(folder.at("a")) == 0640);
    expect(folder.count() == 1 && coir::test::fds_are_back_to(before));
    const auto again = moved.commit();
    const auto late = moved.write(std::string_view("late"));
    expect(!again && again.error() == ErrorCode::closed && !late && late.error() == ErrorCode::closed);
    moved.abort();
    expect(holds(folder.at("a"), "one two"));
    auto fresh = FileReplacement::begin(folder.at("b"), 0604);
    expect(fresh && fresh->commit().has_value());
    expect(holds(folder.at("b"), "") && mode_of(folder.at("b")) == 0604);
  });
}

TEST(FileReplace, one_that_is_aborted_or_forgotten_leaves_nothing) {
  both_sides([&] {
    Folder folder;
    const int before = coir::test::count_fds();
    put(folder.at("a"), "the old content");
    {
      auto next = FileReplacement::begin(folder.at("a"));
      expect(next && next->write(std::string_view("half of")).has_value() && folder.count() == 2);
    }
    expect(folder.count() == 1);
    auto next = FileReplacement::begin(folder.at("a"));
    expect(next && next->write(std::string_view("half of")).has_value());
    next->abort();
    next->abort();
    expect(!next->is_open() && folder.count() == 1);
    // A replacement that is assigned over is aborted.
    next = FileReplacement::begin(folder.at("a"));
    next = FileReplacement::begin(folder.at("b"));
    expect(folder.count() == 2);
    next->abort();
    const auto nowhere = FileReplacement::begin(folder.at("none/b"));
    expect(!nowhere && nowhere.error().sys == ENOENT);
    const auto onto_folder = FileReplacement::begin(folder.at("c/"));
    expect(!onto_folder && onto_folder.error().sys == EISDIR);
    expect(holds(folder.at("a"), "the old content") && folder.count() == 1);
    expect(coir::test::fds_are_back_to(before));
  });
}

TEST(FileReplace, nobody_sweeps_a_folder_while_one_is_under_way) {
  both_sides([&] {
    Folder folder;
    const auto may_sweep = [&folder] {
      auto open = coir::File::open(folder.at("."));
      return open && FileReplacement::may_sweep(open->fd());
    };
    expect(may_sweep());
    auto one = FileReplacement::begin(folder.at("a")), other = FileReplacement::begin(folder.at("b"));
    expect(one && other && !may_sweep());
    expect(one->commit().has_value() && !may_sweep());
    other->abort();
    expect(may_sweep());
  });
  CHECK_TRUE(FileReplacement::is_temporary(".coir-0123456789abcdef"));
  for (const char* const name :
       {".coir-0123456789abcde", ".coir-0123456789abcdeg", ".coir-notes", "coir-0123456789abcdef0"})
    CHECK_FALSE(FileReplacement::is_temporary(name));
}

TEST(FileReplace, a_write_that_fails_or_is_late_keeps_the_commit_from_taking_the_name) {
  both_sides([&] {
    Folder folder;
    static char many[100'000];
    put(folder.at("a"), "the old content");
    {
      SmallDisk disk(70'000);
      auto next = FileReplacement::begin(folder.at("a"));
      const auto full = next->write(many);
      expect(!full && full.error().sys == EFBIG);
      const auto committed = next->commit();
      expect(!committed && committed.error().sys == EFBIG);
    }
    auto late = FileReplacement::begin(folder.at("a"));
    expect(late->write(std::string_view("new")).has_value());
    const auto committed = late->commit(Deadline::now());
    expect(!committed && committed.error() == ErrorCode::timed_out && !late->is_open());
    expect(holds(folder.at("a"), "the old content") && folder.count() == 1);
  });
}

#if !COIR_NO_ASYNC

// A stack of 8 KB holds both, as it would not hold the C library's printf.
TEST(FileReplace, an_8_kb_stack_is_enough) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    Folder folder;
    char first[500], second[500];
    strcpy(first, folder.at("a"));
    strcpy(second, folder.at("b"));
    coir::Fiber fiber = coir::spawn({.stack = 8 * 1024}, [&] {
      expect(replace_file(first, std::string_view("new")).has_value());
      auto next = FileReplacement::begin(second);
      expect(next && next->write(std::string_view("newer")).has_value() && next->commit().has_value());
    });
    expect(fiber.join().has_value());
    expect(folder.count() == 2);
  });
}

#endif

TEST(FileReplace, a_writer_that_is_killed_at_any_moment_leaves_the_old_content_or_the_new) {
  Folder folder;
  static char ones[60'000], twos[60'000];
  memset(ones, '1', sizeof ones);
  memset(twos, '2', sizeof twos);
  for (int round = 0; round < 20; ++round) {
    put(folder.at("a"), {ones, sizeof ones});
    int ready[2];
    CHECK_EQUAL(0, pipe(ready));
    const pid_t child = fork();
    if (child == 0) {
      [[maybe_unused]] const ssize_t n = write(ready[1], "r", 1);
      for (;;) {
        static_cast<void>(replace_file(folder.at("a"), twos));
        static_cast<void>(replace_file(folder.at("a"), ones));
      }
    }
    char byte;
    LONGS_EQUAL(1, read(ready[0], &byte, 1));
    usleep(static_cast<useconds_t>(500 + 137 * round));
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    close(ready[0]);
    close(ready[1]);
    CHECK_TRUE(holds(folder.at("a"), {ones, sizeof ones}) || holds(folder.at("a"), {twos, sizeof twos}));
  }
}

}  // namespace file_replace_test
