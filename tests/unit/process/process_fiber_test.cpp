#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/process.h>
#include <coir/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "core/src/wait/wait_several.h"
#include "tests/support/everywhere.h"

namespace process_fiber_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::Output;
using coir::Process;
using coir::run_process;
using coir::spawn;
using namespace std::chrono_literals;

namespace {

const char* const kSleeps[] = {"sleep", "100", nullptr};

bool no_child_is_left() noexcept {
  return waitpid(-1, nullptr, WNOHANG | __WALL) == -1 && errno == ECHILD;
}

}  // namespace

TEST_GROUP_BASE(ProcessFiber, coir::test::Everywhere) {};

TEST(ProcessFiber, children_run_side_by_side_while_other_fibers_go_on) {
  everywhere([&] {
    const char* const echo[] = {"sh", "-c", "read line; echo $line", nullptr};
    Fiber fibers[20];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        char out[16];
        const auto ran =
            run_process({.argv = echo, .input = coir::Input::bytes(std::string_view("word\n"))}, {.out = out});
        expect(ran && std::string_view(out, ran->out_bytes) == "word\n");
      });
    }
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(no_child_is_left());
  });
}

TEST(ProcessFiber, a_cancelled_fiber_leaves_no_process) {
  everywhere([&] {
    int up[2];
    expect(pipe2(up, O_CLOEXEC | O_NONBLOCK) == 0);
    Fiber runs = spawn([&] {
      const char* const shell[] = {"sh", "-c", "echo up >&2; exec sleep 100", nullptr};
      char out[16];
      const auto cut = run_process({.argv = shell, .err = Output::file(up[1])}, {.out = out});
      expect(!cut && cut.error() == ErrorCode::cancelled);
    });
    expect(coir::wait(up[0], coir::Direction::readable).has_value());
    expect(runs.cancel().has_value());
    expect(runs.join().has_value());
    expect(no_child_is_left());
    coir::close_fd(up[0]);
    coir::close_fd(up[1]);
  });
}

TEST(ProcessFiber, one_that_a_cancelled_fiber_drops_is_killed_and_waited_for) {
  everywhere([&] {
    Fiber drops = spawn([&] {
      auto process = Process::start({.argv = kSleeps});
      expect(process.has_value());
      expect(coir::current().cancel().has_value());
      const auto cut = process->wait();
      expect(!cut && cut.error() == ErrorCode::cancelled);
    });
    expect(drops.join().has_value());
    expect(no_child_is_left());
  });
}

TEST(ProcessFiber, a_flood_does_not_keep_others_from_their_turn_nor_its_deadline_from_ending_it) {
  everywhere([&] {
    std::atomic<bool> over{false};
    Fiber flood = spawn([&] {
      const char* const yes[] = {"yes", nullptr};
      char out[16];
      const auto late = run_process({.argv = yes}, {.out = out, .grace = 1s}, Deadline::after(50ms));
      expect(!late && late.error() == ErrorCode::timed_out);
      over = true;
    });
    int turns = 0;
    while (!over) {
      ++turns;
      coir::yield();
    }
    expect(turns > 2);
    expect(flood.join().has_value());
    expect(no_child_is_left());
  });
}

// A reader that never waits calls pause_between between two reads: a wait would have returned the scope's error.
TEST(ProcessFiber, a_reader_that_never_waits_learns_that_a_scope_has_ended) {
  everywhere([&] {
    coir::CancelScope scope(Deadline::now());
    const auto going = coir::pause_between(Deadline::never());
    expect(!going && going.error() == ErrorCode::timed_out && scope.caused(going.error()));
  });
}

// There is always something to read, and somebody else to run: it hardly ever comes to wait.
TEST(ProcessFiber, a_flood_ends_with_the_deadline_of_a_scope) {
  everywhere([&] {
    std::atomic<bool> over{false};
    Fiber busy = spawn([&] {
      while (!over) {
        for (const Deadline turn = Deadline::after(1ms); !turn.passed();) {
        }
        coir::yield();
      }
    });
    const char* const zeros[] = {"cat", "/dev/zero", nullptr};
    char out[16];
    coir::CancelScope scope(Deadline::after(50ms));
    const auto late = run_process({.argv = zeros}, {.out = out, .grace = 1s}, Deadline::after(60s));
    expect(!late && late.error() == ErrorCode::timed_out && scope.caused(late.error()));
    over = true;
    const coir::Shield shield(Deadline::never());
    expect(busy.join().has_value());
    expect(no_child_is_left());
  });
}

}  // namespace process_fiber_test
