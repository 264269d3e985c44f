// A board's hardware, on a folder that looks like /sys.

#include <coir/port/hardware.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "small_files.h"
#include "tests/support/folder.h"

namespace hardware_test {

using coir::port::Hardware;
using coir::port::Led;
using coir::port::Thermometer;
using coir::test::get;
using coir::test::put;

TEST_GROUP(Hardware) {
  coir::test::Folder base;
  Hardware board;

  void setup() override {
    CHECK_EQUAL(0, chdir(base.path()));
    CHECK_EQUAL(0, system("mkdir -p sys/class/thermal sys/class/leds sys/devices/zone sys/devices/adc "
                          "sys/bus/iio/devices sys/class/cvi-saradc/cvi-saradc0/device out"));
    auto opened = Hardware::open("sys");
    CHECK(opened.has_value());
    board = std::move(*opened);
  }
  void teardown() override {
    board = Hardware();
    CHECK_EQUAL(0, chdir("/"));
  }
};

TEST(Hardware, thermometers_are_read_through_links_that_stay_inside_in_order) {
  put("sys/devices/zone/temp", "-1500\n");
  put("sys/devices/zone/type", "outside\n");
  CHECK_EQUAL(0, symlink("../../devices/zone", "sys/class/thermal/thermal_zone1"));
  put("sys/class/thermal/thermal_zone0/temp", "41250\n");
  put("sys/class/thermal/thermal_zone0/type", "cpu\n");
  put("sys/class/thermal/thermal_zone2/temp", "broken\n");
  put("sys/class/thermal/cooling_device0/type", "fan\n");
  Thermometer found[4];
  const auto count = board.thermometers(found);
  CHECK(count.has_value());
  UNSIGNED_LONGS_EQUAL(2, *count);
  STRCMP_EQUAL("cpu", found[0].name);
  LONGS_EQUAL(41250, found[0].millidegrees);
  STRCMP_EQUAL("outside", found[1].name);
  LONGS_EQUAL(-1500, found[1].millidegrees);
  UNSIGNED_LONGS_EQUAL(1, *board.thermometers(std::span(found, 1)));
}

TEST(Hardware, a_board_without_any_has_none) {
  Thermometer thermometers[2];
  Led leds[2];
  UNSIGNED_LONGS_EQUAL(0, *board.thermometers(thermometers));
  UNSIGNED_LONGS_EQUAL(0, *board.leds(leds));
  LONGS_EQUAL(ENOENT, board.read_adc(1, 0).error());
  LONGS_EQUAL(ENOENT, board.set_led("user", 1).error());
  LONGS_EQUAL(ENOENT, Hardware::open("nothing").error());
}

TEST(Hardware, a_light_shines_as_it_is_told_within_its_range) {
  put("sys/class/leds/user/brightness", "0\n");
  put("sys/class/leds/user/max_brightness", "255\n");
  put("sys/class/leds/act/brightness", "1\n");
  put("sys/class/leds/act/max_brightness", "1\n");
  CHECK(board.set_led("user", 200).has_value());
  STRCMP_EQUAL("200", get("sys/class/leds/user/brightness"));
  LONGS_EQUAL(ERANGE, board.set_led("user", 256).error());
  STRCMP_EQUAL("200", get("sys/class/leds/user/brightness"));
  Led found[4];
  UNSIGNED_LONGS_EQUAL(2, *board.leds(found));
  STRCMP_EQUAL("act", found[0].name);
  STRCMP_EQUAL("user", found[1].name);
  UNSIGNED_LONGS_EQUAL(200, found[1].brightness);
  UNSIGNED_LONGS_EQUAL(255, found[1].most);
}

TEST(Hardware, a_converter_is_read_with_its_scale_or_without) {
  put("sys/bus/iio/devices/iio:device0/in_voltage3_raw", "2048\n");
  auto read = board.read_adc(0, 3);
  CHECK(read && read->raw == 2048 && !read->scaled);
  put("sys/bus/iio/devices/iio:device0/in_voltage_scale", "0.439453125\n");
  read = board.read_adc(0, 3);
  CHECK(read && read->scaled && read->microvolts == 900'000);
  put("sys/bus/iio/devices/iio:device0/in_voltage3_scale", "2\n");
  put("sys/bus/iio/devices/iio:device0/in_voltage3_raw", "-3\n");
  read = board.read_adc(0, 3);
  CHECK(read && read->scaled && read->raw == -3 && read->microvolts == -6'000);
  put("sys/bus/iio/devices/iio:device0/in_voltage3_raw", "much\n");
  LONGS_EQUAL(EINVAL, board.read_adc(0, 3).error());
}

TEST(Hardware, the_converter_of_cvitek_is_told_its_channel_first) {
  put("sys/class/cvi-saradc/cvi-saradc0/device/cv_saradc", "4000");
  const auto read = board.read_adc(0, 2);  // in this folder what was written is what is read
  CHECK(read && read->raw == 2 && !read->scaled);
}

TEST(Hardware, the_converter_of_cvitek_has_one_owner) {
  constexpr const char* kConverter = "sys/class/cvi-saradc/cvi-saradc0/device/cv_saradc";
  put(kConverter, "4000");
  const int owner = open(kConverter, O_RDONLY | O_CLOEXEC);
  LONGS_EQUAL(0, flock(owner, LOCK_EX));
  LONGS_EQUAL(EBUSY, board.read_adc(0, 2).error());
  STRCMP_EQUAL("", get(kConverter));  // no channel was chosen
  close(owner);
  CHECK(board.read_adc(0, 2).has_value());
}

TEST(Hardware, nothing_outside_of_the_folder_is_read_or_written) {
  put("out/brightness", "1\n");
  put("out/max_brightness", "9\n");
  put("out/temp", "1000\n");
  CHECK_EQUAL(0, symlink("../../../out", "sys/class/leds/away"));
  CHECK_EQUAL(0, symlink("../../../out", "sys/class/thermal/thermal_zone0"));
  Led leds[2];
  Thermometer thermometers[2];
  UNSIGNED_LONGS_EQUAL(0, *board.leds(leds));
  UNSIGNED_LONGS_EQUAL(0, *board.thermometers(thermometers));
  LONGS_EQUAL(EXDEV, board.set_led("away", 5).error());
  LONGS_EQUAL(ENOENT, board.set_led("../../../out", 5).error());
  LONGS_EQUAL(ENOENT, board.set_led("..", 5).error());
  LONGS_EQUAL(ENOENT, board.set_led("", 5).error());
  STRCMP_EQUAL("1\n", get("out/brightness"));
}

}  // namespace hardware_test
