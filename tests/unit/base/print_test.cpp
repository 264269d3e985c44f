// print writes whole texts to standard output, and fits on a fiber's stack of 8 KB.
#include <coir/print.h>

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/stack_size.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/runtime.h>
#endif

#include "tests/support/stack_depth.h"

namespace print_test {

using coir::fixed;
using coir::print;

namespace {

constexpr std::size_t kMost = 100'000;
char g_read[kMost + 1], g_long[kMost];

}  // namespace

// Standard output is a file in memory meanwhile.
TEST_GROUP(Print) {
  int before = -1;
  int file = memfd_create("printed", MFD_CLOEXEC);

  void setup() override {
    before = dup(STDOUT_FILENO);
    dup2(file, STDOUT_FILENO);
  }
  void teardown() override {
    dup2(before, STDOUT_FILENO);
    close(before);
    close(file);
  }

  std::string_view printed() {
    const ssize_t size = pread(file, g_read, sizeof g_read, 0);
    return {g_read, size < 0 ? 0 : static_cast<std::size_t>(size)};
  }
};

TEST(Print, parts_are_written_as_format_has_them) {
  CHECK_TRUE(print("sensor ", 17, ": ", fixed(-2153, 2), " C\n"));
  CHECK_TRUE(print("ready\n"));
  CHECK_TRUE(print(42));
  CHECK_TRUE(print(static_cast<const char*>(nullptr)));
  CHECK_TRUE(printed() == "sensor 17: -21.53 C\nready\n42?");
}

TEST(Print, one_text_is_written_whole_and_several_parts_are_cut) {
  memset(g_long, 'x', sizeof g_long);
  CHECK_TRUE(print(std::string_view(g_long, kMost)));
  CHECK_TRUE(printed() == std::string_view(g_long, kMost));
  CHECK_EQUAL(0, ftruncate(file, 0));
  lseek(file, 0, SEEK_SET);
  CHECK_TRUE(print(std::string_view(g_long, 600), "\n"));
  LONGS_EQUAL(coir::kPrintedBytes, printed().size());
  CHECK_TRUE(printed().ends_with("x...\n"));
}

TEST(Print, a_failed_write_is_an_error) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  CHECK_TRUE(full >= 0);
  dup2(full, STDOUT_FILENO);
  close(full);
  CHECK_FALSE(print("lost\n"));
}

TEST(Print, a_line_takes_less_than_1_kb_of_stack) {
  if (coir::kStackInflation != 1) return;
  const std::size_t deep = coir::test::depth_of([] { print("sensor ", 17, ": ", fixed(-2153, 2), " C\n"); });
  CHECK_COMPARE(deep, <, 1024);
}

#if !COIR_NO_ASYNC
TEST(Print, it_fits_on_a_fiber_of_8_kb) {
  const auto ended = coir::run_until_idle({.workers = 1}, [] {
    coir::spawn({.name = "small", .stack = 8 * 1024}, [] {
      print("on ", 8, " KB: ", coir::json_quoted("a\"b"), " ", coir::byte_size(123456), "\n");
    }).detach();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(printed() == "on 8 KB: \"a\\\"b\" 120 KB\n");
}
#endif

}  // namespace print_test
