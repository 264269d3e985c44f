// The code of a user of coir/wait.h: errno comes by coir's header alone, and <errno.h> may follow it.
#include <coir/wait.h>
// The rest comes after, as a program may order it.
#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <errno.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/pipe.h"
#include "tests/support/scale.h"

namespace errno_test {

using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::test::Pipe;
using coir::test::scaled;
using namespace std::chrono_literals;

namespace {

// The ordinary loop over EAGAIN. The compiler may keep whatever address it likes for all of it.
long read_all(int fd, char* into, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    errno = 0;
    const ssize_t n = read(fd, into + done, size - done);
    if (n == 0) break;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !coir::wait(fd, coir::Direction::readable)) return -1000 - errno;
  }
  return static_cast<long>(done);
}

// Whether each of the calls after a wait leaves its own errno, given that the wait ends on another thread.
bool errno_is_of_each_call(int fd, int rounds) {
  bool right = true;
  char byte;
  for (int i = 0; i < rounds; ++i) {
    errno = 0;
    right = read(fd, &byte, 1) == -1 && errno == EAGAIN && right;
    right = coir::sleep(10us).has_value() && right;
    errno = 0;
    right = read(-1, &byte, 1) == -1 && errno == EBADF && right;
    right = coir::sleep(10us).has_value() && right;
  }
  return right;
}

}  // namespace

TEST_GROUP(Errno) {};

TEST(Errno, is_of_the_thread_that_runs_after_each_wait) {
  std::atomic<int> wrong{0};
  const auto ended = run_until_idle({.workers = 2, .migrate = kManyWorkers}, [&] {
    for (int i = 0; i < 4; ++i) {
      spawn([&] {
        Pipe pipe;
        wrong += !errno_is_of_each_call(pipe.reader, scaled({100, 60, 60, 30}));
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, wrong);
}

TEST(Errno, a_loop_over_eagain_reads_to_the_end) {
  std::atomic<int> wrong{0};
  const auto ended = run_until_idle({.workers = 2, .migrate = kManyWorkers}, [&] {
    for (int i = 0; i < scaled({50, 30, 30, 10}); ++i) {
      Pipe pipe;
      coir::Fiber writer = spawn([&] {
        for (int k = 0; k < 4; ++k) {
          static_cast<void>(coir::sleep(10us));
          wrong += !pipe.put();
        }
      });
      coir::Task<long> reader = spawn([&] {
        char bytes[4];
        return read_all(pipe.reader, bytes, sizeof bytes);
      });
      wrong += *reader.await() != 4;
      static_cast<void>(writer.join());
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, wrong);
}

// Names that do not concern errno stay as the C library defines them.
TEST(Errno, is_the_one_that_the_c_library_sets) {
  errno = 0;
  LONGS_EQUAL(-1, close(-1));
  LONGS_EQUAL(EBADF, errno);
  errno = ENOENT;
  LONGS_EQUAL(ENOENT, errno);
}

}  // namespace errno_test
