// The promises that need no network: how readings are read, told, and dropped. A line for each promise; exit status 1 if
// one is broken.
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <string_view>

#include "../monitor.h"
#include "../sensor.h"

namespace {

int g_broken = 0;

void promise(const char* text, bool kept) {
  printf("%s - %s\n", kept ? "ok" : "not ok", text);
  g_broken += kept ? 0 : 1;
}

void reads_numbers() {
  promise("a reading is a whole number with or without a line end",
          parse_reading("21500\n") == 21'500 && parse_reading("-40000") == -40'000);
  promise("a text that is no temperature is no reading", !parse_reading("") && !parse_reading("21.5") &&
                                                             !parse_reading("warm") && !parse_reading("-300000") &&
                                                             !parse_reading("99999999999"));
}

void writes_json() {
  char room[64];
  promise("a reading is told as JSON, in degrees",
          write_json({.number = 7, .value = -500}, room) == R"({"number":7,"celsius":-0.500})");
}

// A sensor whose file is written while it is read.
void finds_a_late_sensor() {
  char path[] = "/tmp/station-test.XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  Sensor sensor(path);
  bool absent = false, late = false;
  static_cast<void>(coir::run_until_idle({}, [&] {
    absent = !sensor.read();
    const int made = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    late = made >= 0 && write(made, "1500\n", 5) == 5 && sensor.read() == 1'500;
    close(made);
  }));
  unlink(path);
  close(fd);
  promise("a sensor that is not there yet is no reading, and is found when it comes", absent && late);
}

// Without a publisher the queue fills up.
void drops_at_the_full_queue() {
  Monitor monitor(nullptr);
  static_cast<void>(coir::run_until_idle({}, [&] {
    coir::Nursery jobs;
    auto measuring = jobs.spawn([&] { return monitor.measure(std::chrono::milliseconds(1)); });
    while (monitor.counts().dropped.load() < 3) static_cast<void>(coir::sleep(std::chrono::milliseconds(1)));
    static_cast<void>(measuring.cancel());
    static_cast<void>(measuring.await());
  }));
  const auto& counts = monitor.counts();
  promise("measuring goes on when nobody takes the readings, and what is dropped is counted",
          counts.taken.load() == Monitor::kQueue + counts.dropped.load() && !monitor.newest());
}

void publishes_the_newest() {
  Monitor monitor(nullptr);
  static_cast<void>(coir::run_until_idle({}, [&] {
    coir::Nursery jobs;
    auto publishing = jobs.spawn([&] { return monitor.publish(); });
    auto measuring = jobs.spawn([&] { return monitor.measure(std::chrono::milliseconds(1)); });
    while (monitor.counts().taken.load() < 3 || !monitor.newest()) {
      static_cast<void>(coir::sleep(std::chrono::milliseconds(1)));
    }
    for (auto* job : {&measuring, &publishing}) {
      static_cast<void>(job->cancel());
      static_cast<void>(job->await());
    }
  }));
  const auto newest = monitor.newest();
  promise("the newest reading is told", newest && newest->number >= 1 && newest->value >= 20'000);
}

}  // namespace

int main() {
  reads_numbers();
  writes_json();
  finds_a_late_sensor();
  drops_at_the_full_queue();
  publishes_the_newest();
  return g_broken == 0 ? 0 : 1;
}
