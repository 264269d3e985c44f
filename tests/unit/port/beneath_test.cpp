// Opening beneath a root, by openat2 and by the walk that replaces it: the same files, and none outside.

#include <coir/port/beneath.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/folder.h"

namespace beneath_test {

using coir::port::open_beneath;
using coir::port::open_beneath_to_write;
using coir::port::walk_beneath;

TEST_GROUP(Beneath) {
  coir::test::Folder base;
  int root = -1;

  void setup() override {
    CHECK_EQUAL(0, chdir(base.path()));
    make_directory("root");
    make_directory("root/a");
    make_directory("root/a/b");
    make_file("secret");
    make_file("root/file");
    make_file("root/a/file");
    make_file("root/a/b/file");
    make_link("file", "root/link");
    make_link("a", "root/to_a");
    make_link("../file", "root/a/up");
    make_link("../../file", "root/a/b/up2");
    make_link("b/../../a/b", "root/a/around");
    make_link("link", "root/twice");
    make_link("../secret", "root/out");
    make_link("../../secret", "root/a/out");
    make_link("..", "root/parent");
    make_link("/etc/passwd", "root/absolute");
    make_link("loop", "root/loop");
    make_link("nothing", "root/dangling");
    make_link("/proc/self/fd/0", "root/magic");
    CHECK_EQUAL(0, mkfifo("root/fifo", 0600));
    root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(root >= 0);
  }
  void teardown() override {
    close(root);
    CHECK_EQUAL(0, chdir("/"));
  }
  void make_directory(const char* path) { CHECK_EQUAL(0, mkdir(path, 0700)); }
  void make_file(const char* path) {
    FILE* file = fopen(path, "w");
    CHECK(file != nullptr);
    fputs(path, file);
    fclose(file);
  }
  void make_link(const char* to, const char* path) { CHECK_EQUAL(0, symlink(to, path)); }

  using Open = int (*)(int, const char*, std::span<char>) noexcept;

  // content returns what the file that was opened holds: its own path.
  const char* content(Open open_it, const char* path) {
    static char text[128];
    char work[1024];
    const int fd = open_it(root, path, work);
    if (fd < 0) return strerror(-fd);
    const ssize_t got = read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    close(fd);
    return text;
  }
};

TEST(Beneath, opens_files_and_links_that_stay_inside) {
  for (Open open_it : {open_beneath, walk_beneath}) {
    STRCMP_EQUAL("root/file", content(open_it, "file"));
    STRCMP_EQUAL("root/a/b/file", content(open_it, "a/b/file"));
    STRCMP_EQUAL("root/file", content(open_it, "link"));
    STRCMP_EQUAL("root/file", content(open_it, "twice"));
    STRCMP_EQUAL("root/a/file", content(open_it, "to_a/file"));
    STRCMP_EQUAL("root/file", content(open_it, "a/up"));
    STRCMP_EQUAL("root/file", content(open_it, "to_a/b/up2"));
    STRCMP_EQUAL("root/a/b/file", content(open_it, "to_a/around/file"));
  }
}

TEST(Beneath, nothing_outside_is_opened) {
  for (Open open_it : {open_beneath, walk_beneath}) {
    for (const char* path :
         {"out", "a/out", "to_a/out", "parent/secret", "absolute", "../secret", "a/../../secret", "..", "parent"}) {
      char work[1024];
      const int fd = open_it(root, path, work);
      CHECK_TEXT(fd == -EXDEV, path);
    }
    char work[1024];
    CHECK(open_it(root, "magic", work) < 0);
  }
}

TEST(Beneath, a_file_is_opened_to_be_written_and_none_is_made) {
  char work[1024];
  const int fd = open_beneath_to_write(root, "to_a/up", work);
  CHECK(fd >= 0);
  LONGS_EQUAL(2, write(fd, "ab", 2));
  close(fd);
  STRCMP_EQUAL("ab", content(open_beneath, "file"));
  LONGS_EQUAL(-ENOENT, open_beneath_to_write(root, "nothing", work));
  LONGS_EQUAL(-ENOENT, open_beneath_to_write(root, "fifo", work));
  LONGS_EQUAL(-EXDEV, open_beneath_to_write(root, "out", work));
  STRCMP_EQUAL("secret",
               content([](int, const char*, std::span<char>) noexcept { return open("secret", O_RDONLY); }, ""));
}

TEST(Beneath, loops_and_missing_files_are_errors) {
  for (Open open_it : {open_beneath, walk_beneath}) {
    char work[1024];
    LONGS_EQUAL(-ELOOP, open_it(root, "loop", work));
    LONGS_EQUAL(-ENOENT, open_it(root, "nothing", work));
    LONGS_EQUAL(-ENOENT, open_it(root, "a/nothing/file", work));
    LONGS_EQUAL(-ENOENT, open_it(root, "dangling", work));
    LONGS_EQUAL(-ENOTDIR, open_it(root, "file/x", work));
  }
}

TEST(Beneath, an_entry_that_is_neither_file_nor_directory_is_not_found_and_never_opened) {
  make_link("fifo", "root/to_fifo");
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  CHECK(inotify_add_watch(watch, "root/fifo", IN_OPEN) >= 0);
  char work[1024];
  for (Open open_it : {open_beneath, walk_beneath}) {
    LONGS_EQUAL(-ENOENT, open_it(root, "fifo", work));
    LONGS_EQUAL(-ENOENT, open_it(root, "to_fifo", work));
    char event[256];
    LONGS_EQUAL(-1, read(watch, event, sizeof event));
    // A terminal, a device.
    const int devices = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    LONGS_EQUAL(-ENOENT, open_it(devices, "null", work));
    close(devices);
  }
  close(watch);
}

TEST(Beneath, a_directory_opens) {
  for (Open open_it : {open_beneath, walk_beneath}) {
    char work[1024];
    for (const char* path : {".", "a", "to_a"}) {
      const int fd = open_it(root, path, work);
      CHECK_TEXT(fd >= 0, path);
      struct stat info;
      CHECK_EQUAL(0, fstat(fd, &info));
      CHECK_TEXT(S_ISDIR(info.st_mode), path);
      close(fd);
    }
  }
}

TEST(Beneath, the_walk_leaves_no_descriptor_open) {
  const int before = dup(0);
  close(before);
  char work[1024];
  for (const char* path : {"a/b/file", "to_a/around/file", "a/out", "loop", "a/nothing/file"}) {
    const int fd = walk_beneath(root, path, work);
    if (fd >= 0) close(fd);
  }
  const int after = dup(0);
  close(after);
  LONGS_EQUAL(before, after);
}

TEST(Beneath, links_that_do_not_fit_the_memory_are_refused) {
  char work[8];
  LONGS_EQUAL(-ENAMETOOLONG, walk_beneath(root, "a/around/file", work));
}

}  // namespace beneath_test
