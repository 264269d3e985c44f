#include <coir/file.h>

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

#include <chrono>

#include "tests/support/both_sides.h"

using coir::Deadline;
using coir::ErrorCode;
using coir::File;
using coir::FileLines;
using coir::replace_file;
using namespace std::chrono_literals;

namespace {

constinit coir::Account texts("texts");

// Folder is a folder of its own, removed with what is in it.
class Folder {
 public:
  Folder() noexcept {
    umask(022);
    snprintf(path_, sizeof path_, "%s/coir-file.XXXXXX", getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(path_) == nullptr) abort();
  }
  ~Folder() {
    for_each([this](const char* name) { unlink(at(name)); });
    rmdir(path_);
  }
  const char* at(const char* name) noexcept {
    snprintf(file_, sizeof file_, "%s/%s", path_, name);
    return file_;
  }
  int count() noexcept {
    int files = 0;
    for_each([&](const char*) { ++files; });
    return files;
  }

 private:
  template <class F>
  void for_each(F f) noexcept {
    DIR* const folder = opendir(path_);
    while (const dirent* const entry = readdir(folder)) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) f(entry->d_name);
    }
    closedir(folder);
  }

  char path_[200];
  char file_[500];
};

void put(const char* path, std::string_view text, unsigned mode = 0644) noexcept {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
  fchmod(fd, mode);
  close(fd);
}

bool holds(const char* path, std::string_view text) noexcept {
  static char bytes[1 << 16];
  const int fd = open(path, O_RDONLY);
  const ssize_t n = read(fd, bytes, sizeof bytes);
  close(fd);
  return n >= 0 && std::string_view(bytes, static_cast<std::size_t>(n)) == text;
}

unsigned mode_of(const char* path) noexcept {
  struct stat status;
  return stat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

// Files of this process end at `bytes` while it lives: a full disk for those that have none to fill.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) noexcept {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

}  // namespace

TEST_GROUP_BASE(File, coir::test::BothSides){};

TEST(File, a_missing_one_is_an_error_with_its_errno) {
  both_sides([&] {
    Folder folder;
    const auto file = File::open(folder.at("none"));
    expect(!file && file.error() == ErrorCode::system && file.error().sys == ENOENT);
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
    expect(file->read_at(part, 10).value_or(9) == 0);
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

TEST(File, is_written_and_appended_to) {
  both_sides([&] {
    Folder folder;
    auto file = File::open(folder.at("a"), {.read = false, .write = true, .create = true, .mode = 0600});
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
    auto file = File::open(folder.at("a"), {.read = false, .write = true, .create = true});
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

TEST(File, replacing_leaves_the_new_content_alone_and_keeps_the_mode) {
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

TEST(File, a_replacement_that_fails_leaves_the_old_file_and_nothing_else) {
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

TEST(File, a_writer_that_is_killed_at_any_moment_leaves_the_old_content_or_the_new) {
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

#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
TEST(File, a_cancelled_fiber_reads_and_replaces_nothing) {
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               Folder folder;
               put(folder.at("a"), "old");
               coir::shutdown();
               const auto cut = replace_file(folder.at("a"), std::string_view("new"));
               expect(!cut && cut.error() == ErrorCode::cancelled);
               expect(holds(folder.at("a"), "old") && folder.count() == 1);
             }).has_value());
  LONGS_EQUAL(0, wrong);
}
#endif
