#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>

#include <atomic>
#include <cstring>

#include "tests/support/pipe.h"

namespace classic_pipes_test {

using coir::Direction;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::test::Pipe;

namespace {

constexpr int kMessages = 1'000;

// Message is larger than a share of the pipe's buffer, so that writers have to wait, too.
struct Message {
  int pipe, number;
  char filling[1'000];
};

// transfer moves a whole message: true when it was complete, false at the end.
template <class Call>
bool transfer(int fd, Direction direction, Message& message, Call call) {
  auto* const bytes = reinterpret_cast<char*>(&message);
  for (std::size_t done = 0; done < sizeof message;) {
    const ssize_t n = call(fd, bytes + done, sizeof message - done);
    if (n == 0) return false;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (!coir::wait(fd, direction)) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_GROUP(ClassicPipes) {};

TEST(ClassicPipes, two_pipes_carry_a_thousand_messages_each_and_then_end) {
  for (const bool ppoll : {false, true}) {
    for (const unsigned workers : {1u, 2u}) {
      std::atomic<int> arrived[2] = {}, wrong{0}, ends{0};
      const auto ended = run_until_idle({.workers = workers, .force_ppoll = ppoll}, [&] {
        Pipe pipes[2];
        Fiber readers[2], writers[2];
        for (int i = 0; i < 2; ++i) {
          readers[i] = spawn({.name = "reader"}, [&, i] {
            Message message;
            while (transfer(pipes[i].reader, Direction::readable, message, read)) {
              wrong += message.pipe != i || message.number != arrived[i]++ || message.filling[999] != 'f';
            }
            ++ends;
          });
          writers[i] = spawn({.name = "writer"}, [&, i] {
            Message message{.pipe = i, .number = 0, .filling = {}};
            std::memset(message.filling, 'f', sizeof message.filling);
            for (; message.number < kMessages; ++message.number) {
              wrong += !transfer(pipes[i].writer, Direction::writable, message,
                                 [](int fd, char* bytes, std::size_t count) { return write(fd, bytes, count); });
            }
            pipes[i].close_writer();
          });
        }
        for (int i = 0; i < 2; ++i) wrong += !writers[i].join() || !readers[i].join();
      });
      CHECK_TRUE(ended.has_value());
      LONGS_EQUAL(0, wrong);
      LONGS_EQUAL(2, ends);
      LONGS_EQUAL(kMessages, arrived[0]);
      LONGS_EQUAL(kMessages, arrived[1]);
    }
  }
}

}  // namespace classic_pipes_test
