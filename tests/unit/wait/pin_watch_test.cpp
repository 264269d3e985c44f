// Fibers wait for edges of a pin. Its chip is the ioctls that are answered here, and a line is a pipe.

#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/pin_watch.h>
#include <coir/runtime.h>
#include <coir/select.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/support/everywhere.h"
#include "tests/support/folder.h"

namespace pin_watch_test {

using namespace std::chrono_literals;
using coir::Case;
using coir::Deadline;
using coir::ErrorCode;
using coir::PinWatch;
using coir::port::PinEdges;
using coir::port::Pins;

namespace {

struct Chip {
  coir::Atomic<bool> gone = false;
  int line[2] = {-1, -1};

  int take(unsigned long request, void* argument) {
    if (gone.load()) return errno = ENODEV, -1;
    switch (static_cast<unsigned>(request)) {
      case GPIO_GET_CHIPINFO_IOCTL:
        return strcpy(static_cast<gpiochip_info*>(argument)->label, "bank"), 0;
      case GPIO_V2_GET_LINE_IOCTL:
        if (pipe(line) != 0) return -1;
        return static_cast<gpio_v2_line_request*>(argument)->fd = line[0], 0;
      default:
        return 0;
    }
  }
};
Chip* g_chip = nullptr;

}  // namespace

TEST_GROUP_BASE(PinWatch, coir::test::Everywhere) {
  coir::test::Folder folder;
  Chip chip;
  Pins pins;

  void setup() override {
    g_chip = &chip;
    close(::open(folder.at("gpiochip3"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    auto opened = Pins::open({.sysfs = folder.path(), .devices = folder.path(), .board = {}});
    CHECK(opened.has_value());
    pins = std::move(*opened);
  }
  void teardown() override {
    close(chip.line[1]);
    g_chip = nullptr;
  }
  PinWatch watch() {
    close(std::exchange(chip.line[1], -1));
    auto pin = pins.take("bank:4", {.edges = PinEdges::both});
    expect(pin.has_value());
    return PinWatch(std::move(*pin));
  }
  void happen(std::uint32_t id, std::uint32_t number) {
    gpio_v2_line_event event{};
    event.id = id;
    event.line_seqno = number;
    expect(write(chip.line[1], &event, sizeof event) == sizeof event);
  }
};

TEST(PinWatch, a_fiber_waits_for_edges_and_hears_of_lost_ones) {
  everywhere([&] {
    PinWatch button = watch();
    coir::Fiber presser = coir::spawn([&] {
      happen(GPIO_V2_LINE_EVENT_RISING_EDGE, 1);
      happen(GPIO_V2_LINE_EVENT_FALLING_EDGE, 4);
    });
    auto edge = button.next();
    expect(edge && edge->high && edge->lost == 0);
    edge = button.next();
    expect(edge && !edge->high && edge->lost == 2);
    expect(!button.poll() && button.poll().error() == ErrorCode::temporary);
    expect(presser.join().has_value());
    const auto late = button.next(Deadline::after(1ms));
    expect(!late && late.error().is_late());
  });
}

TEST(PinWatch, a_select_waits_for_an_edge) {
  everywhere([&] {
    PinWatch button = watch();
    expect(!button.poll());
    coir::Fiber presser = coir::spawn([&] { happen(GPIO_V2_LINE_EVENT_RISING_EDGE, 1); });
    const auto won = coir::select({Case::ready(button.fd(), button.direction()), Case::at(Deadline::never())});
    expect(won && won->index == 0);
    const auto edge = button.poll();
    expect(edge && edge->high);
    expect(presser.join().has_value());
  });
}

TEST(PinWatch, a_chip_that_vanishes_ends_the_wait) {
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    PinWatch button = watch();
    chip.gone.store(true);
    const auto edge = button.next();
    expect(!edge && edge.error() == ErrorCode::closed && edge.error().sys == ENODEV);
  });
  check();
  CHECK(ended.has_value());
}

TEST(PinWatch, a_plain_thread_waits_too) {
  PinWatch button = watch();
  happen(GPIO_V2_LINE_EVENT_FALLING_EDGE, 1);
  const auto edge = button.next();
  CHECK(edge && !edge->high);
}

}  // namespace pin_watch_test

extern "C" int __real_ioctl(int fd, unsigned long request, void* argument);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  using pin_watch_test::g_chip;
  return g_chip != nullptr ? g_chip->take(request, argument) : __real_ioctl(fd, request, argument);
}
