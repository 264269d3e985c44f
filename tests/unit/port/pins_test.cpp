// Pins by the character device, whose ioctls are answered here and whose edges come through a pipe, and by a folder that looks
// like sysfs.

#include <coir/port/pins.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "small_files.h"
#include "tests/support/folder.h"

namespace pins_test {

using coir::port::Pin;
using coir::port::PinEdges;
using coir::port::PinPlace;
using coir::port::Pins;
using coir::port::PinUse;
using coir::test::get;
using coir::test::put;

namespace {

constexpr PinPlace kBoard[] = {{"LED", "portc", 24, 440}, {"GP14", "porta", 14, 494}, {"GP2", "pwr_gpio", 26, 378}};

// Driver is the kernel behind the files gpiochipN: of each the size says which it is. A line is a pipe, whose other end
// gives the edges.
struct Driver {
  struct Chip {
    const char* label;
    std::uint32_t lines;
    bool vanished = false;
  };
  Chip chips[3] = {{"porta", 32}, {"portb", 32}, {"portc", 32}};
  const char* holder = nullptr;  // of all lines
  gpio_v2_line_request asked = {};
  bool high = false;
  bool gone = false;  // the chip of a taken line
  int edges = -1;     // to write them to

  int take(int fd, unsigned long request, void* argument);
};
Driver* g_driver = nullptr;

int Driver::take(int fd, unsigned long request, void* argument) {
  request = static_cast<unsigned>(request);  // musl's is an int
  if (request == GPIO_V2_LINE_GET_VALUES_IOCTL || request == GPIO_V2_LINE_SET_VALUES_IOCTL) {
    if (gone) return errno = ENODEV, -1;
    auto& values = *static_cast<gpio_v2_line_values*>(argument);
    if (request == GPIO_V2_LINE_GET_VALUES_IOCTL) return values.bits = high ? values.mask : 0, 0;
    if ((asked.config.flags & GPIO_V2_LINE_FLAG_OUTPUT) == 0) return errno = EPERM, -1;
    return high = (values.bits & values.mask) != 0, 0;
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size > 2) return errno = ENOTTY, -1;
  const Chip& chip = chips[status.st_size];
  if (chip.vanished) return errno = ENODEV, -1;
  switch (request) {
    case GPIO_GET_CHIPINFO_IOCTL: {
      auto& info = *static_cast<gpiochip_info*>(argument);
      snprintf(info.name, sizeof info.name, "gpiochip%d", static_cast<int>(status.st_size));
      snprintf(info.label, sizeof info.label, "%s", chip.label);
      return 0;
    }
    case GPIO_V2_GET_LINEINFO_IOCTL: {
      auto& info = *static_cast<gpio_v2_line_info*>(argument);
      if (info.offset >= chip.lines) return errno = EINVAL, -1;
      info.flags = GPIO_V2_LINE_FLAG_OUTPUT;
      if (holder == nullptr) return 0;
      info.flags |= GPIO_V2_LINE_FLAG_USED;
      snprintf(info.consumer, sizeof info.consumer, "%s", holder);
      return 0;
    }
    case GPIO_V2_GET_LINE_IOCTL: {
      asked = *static_cast<gpio_v2_line_request*>(argument);
      if (asked.offsets[0] >= chip.lines) return errno = EINVAL, -1;
      if (holder != nullptr) return errno = EBUSY, -1;
      if ((asked.config.flags & GPIO_V2_LINE_FLAG_OUTPUT) != 0) high = (asked.config.attrs[0].attr.values & 1) != 0;
      int ends[2];
      if (pipe(ends) != 0) return -1;
      static_cast<gpio_v2_line_request*>(argument)->fd = ends[0];
      edges = ends[1];
      return 0;
    }
    default:
      return errno = ENOTTY, -1;
  }
}

}  // namespace

TEST_GROUP(Pins) {
  coir::test::Folder base;
  Driver driver;
  Pins pins;

  void setup() override {
    g_driver = &driver;
    CHECK_EQUAL(0, chdir(base.path()));
    CHECK_EQUAL(
        0,
        system(
            "mkdir -p sys/class/gpio dev && : >dev/gpiochip0 && printf 1 >dev/gpiochip1 && printf 12 >dev/gpiochip2"));
    open("dev");
  }
  void teardown() override {
    pins = Pins();
    if (driver.edges >= 0) close(driver.edges);
    g_driver = nullptr;
    CHECK_EQUAL(0, chdir("/"));
  }
  void open(const char* devices) {
    auto opened = Pins::open({.sysfs = "sys", .devices = devices, .board = kBoard});
    CHECK(opened.has_value());
    pins = std::move(*opened);
  }
  void happen(std::uint32_t id, std::uint32_t number) {
    gpio_v2_line_event event{};
    event.id = id;
    event.line_seqno = number;
    event.timestamp_ns = number * 1000;
    CHECK_EQUAL(static_cast<ssize_t>(sizeof event), write(driver.edges, &event, sizeof event));
  }
  int refusal(std::string_view name) {
    const auto taken = pins.take(name, {});
    return taken ? 0 : taken.error().number;
  }
};

TEST(Pins, a_name_of_the_board_leads_to_the_line_of_its_controller) {
  auto led = pins.take("LED", {.use = PinUse::output, .high = true, .consumer = "blinker"});
  CHECK(led && !led->is_urgent());
  UNSIGNED_LONGS_EQUAL(24, driver.asked.offsets[0]);
  UNSIGNED_LONGS_EQUAL(1, driver.asked.num_lines);
  STRCMP_EQUAL("blinker", driver.asked.consumer);
  CHECK(driver.high && *led->read());
  CHECK(led->write(false).has_value() && !driver.high);
}

TEST(Pins, a_line_is_named_by_its_controller_too) {
  CHECK(pins.take("portb:3", {}).has_value());
  UNSIGNED_LONGS_EQUAL(3, driver.asked.offsets[0]);
  UNSIGNED_LONGS_EQUAL(0, driver.asked.config.flags);  // its direction stays
  close(driver.edges);
  CHECK(pins.take("gpiochip2:7", {.use = PinUse::input}).has_value());
  UNSIGNED_LONGS_EQUAL(GPIO_V2_LINE_FLAG_INPUT, driver.asked.config.flags);
  LONGS_EQUAL(EINVAL, refusal("portb:32"));
  for (const char* name : {"", "GP99", "portb:", ":3", "portb:x", "portb:3 "}) LONGS_EQUAL(ENOENT, refusal(name));
}

TEST(Pins, a_device_tree_names_a_chip) {
  put("sys/bus/gpio/devices/gpiochip1/of_node/bank-name", "pwr_gpio");
  CHECK(pins.take("GP2", {}).has_value());
  UNSIGNED_LONGS_EQUAL(26, driver.asked.offsets[0]);
}

TEST(Pins, a_busy_line_names_its_holder) {
  driver.holder = "sysfs";
  const auto led = pins.take("LED", {.use = PinUse::output});
  CHECK(!led);
  LONGS_EQUAL(EBUSY, led.error().number);
  STRCMP_EQUAL("sysfs", led.error().holder);
  const auto status = pins.look(*pins.find("LED"));
  CHECK(status && status->by_device && status->held && status->output && !status->has_level);
  STRCMP_EQUAL("sysfs", status->holder);
}

TEST(Pins, a_missing_chip_is_told_from_a_missing_name) {
  driver.chips[0].vanished = true;
  LONGS_EQUAL(ENODEV, refusal("porta:14"));
  LONGS_EQUAL(ENOENT, refusal("GP15"));
  LONGS_EQUAL(ENODEV, pins.look(*pins.find("porta:14")).error());
}

TEST(Pins, a_chip_that_vanishes_ends_reading_and_writing) {
  auto pin = pins.take("LED", {.use = PinUse::output});
  CHECK(pin.has_value());
  driver.gone = true;
  LONGS_EQUAL(ENODEV, pin->read().error());
  LONGS_EQUAL(ENODEV, pin->write(true).error());
}

TEST(Pins, edges_come_in_order_and_lost_ones_are_counted) {
  auto button = pins.take("GP14", {.edges = PinEdges::both, .kept_edges = 32});
  CHECK(button.has_value());
  UNSIGNED_LONGS_EQUAL(GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING,
                       driver.asked.config.flags);
  UNSIGNED_LONGS_EQUAL(32, driver.asked.event_buffer_size);
  LONGS_EQUAL(EAGAIN, button->next_edge().error());
  happen(GPIO_V2_LINE_EVENT_RISING_EDGE, 1);
  happen(GPIO_V2_LINE_EVENT_FALLING_EDGE, 5);
  auto edge = button->next_edge();
  CHECK(edge && edge->high && edge->lost == 0 && edge->ns == 1000);
  edge = button->next_edge();
  CHECK(edge && !edge->high && edge->lost == 3 && edge->ns == 5000);
  LONGS_EQUAL(EAGAIN, button->next_edge().error());
}

TEST(Pins, edges_lost_before_the_first_are_counted) {
  auto button = pins.take("GP14", {.edges = PinEdges::rising});
  CHECK(button.has_value());
  happen(GPIO_V2_LINE_EVENT_RISING_EDGE, 18);
  const auto edge = button->next_edge();
  CHECK(edge && edge->lost == 17);
}

TEST(Pins, sysfs_serves_a_pin_whose_controller_no_chip_has) {
  put("sys/class/gpio/gpio378/direction", "in\n");
  put("sys/class/gpio/gpio378/value", "1\n");
  auto pin = pins.take("GP2", {});
  CHECK(pin && pin->is_urgent() && *pin->read());
  STRCMP_EQUAL("in\n", get("sys/class/gpio/gpio378/direction"));
  const auto status = pins.look(*pins.find("GP2"));
  CHECK(status && !status->by_device && status->held && status->has_level && status->high && !status->output);
  STRCMP_EQUAL("sysfs", status->holder);
}

TEST(Pins, an_output_of_sysfs_has_its_level_from_the_start) {
  open(nullptr);
  put("sys/class/gpio/gpio440/direction", "in\n");
  put("sys/class/gpio/gpio440/value", "1\n");
  auto pin = pins.take("440", {.use = PinUse::output});
  CHECK(pin.has_value());
  STRCMP_EQUAL("low", get("sys/class/gpio/gpio440/direction"));
  STRCMP_EQUAL("0", get("sys/class/gpio/gpio440/value"));
  CHECK(pin->write(true).has_value());
  STRCMP_EQUAL("1", get("sys/class/gpio/gpio440/value"));
  put("sys/class/gpio/gpio440/direction", "out\n");
  CHECK(pins.take("LED", {.use = PinUse::output, .high = true}).has_value());
  STRCMP_EQUAL("out\n", get("sys/class/gpio/gpio440/direction"));
}

TEST(Pins, a_pin_that_sysfs_does_not_show_is_asked_for_and_given_back) {
  open(nullptr);
  LONGS_EQUAL(ENODEV, refusal("440"));  // nothing to ask
  put("sys/class/gpio/export", "");
  put("sys/class/gpio/unexport", "");
  LONGS_EQUAL(ENOENT, refusal("440"));  // this folder shows nothing for it
  STRCMP_EQUAL("440", get("sys/class/gpio/export"));
  STRCMP_EQUAL("440", get("sys/class/gpio/unexport"));
  put("sys/class/gpio/gpio441/value", "0\n");
  CHECK(pins.take("441", {}).has_value());
  STRCMP_EQUAL("440", get("sys/class/gpio/unexport"));  // another has shown it
}

TEST(Pins, nothing_outside_of_the_folder_is_read_or_written) {
  open(nullptr);
  put("out/value", "0\n");
  CHECK_EQUAL(0, symlink("../../../out", "sys/class/gpio/gpio1"));
  LONGS_EQUAL(EXDEV, refusal("1"));
  STRCMP_EQUAL("0\n", get("out/value"));
  CHECK_EQUAL(0, chdir("dev"));
  LONGS_EQUAL(ENODEV, refusal("../out:1"));
  CHECK_EQUAL(0, chdir(".."));
}

TEST(Pins, neither_folder_is_an_error) {
  LONGS_EQUAL(ENOENT, Pins::open({.sysfs = "nothing", .devices = "nowhere"}).error());
  CHECK(Pins::open({.sysfs = "nothing", .devices = "dev"}).has_value());
}

}  // namespace pins_test

extern "C" int __real_ioctl(int fd, unsigned long request, void* argument);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  using pins_test::g_driver;
  return g_driver != nullptr ? g_driver->take(fd, request, argument) : __real_ioctl(fd, request, argument);
}
