// Programs one after the other, each one's output the next one's input. At the deadline all of them end, with whatever
// they have started, and none is left behind as a zombie.

#include <coir/process.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <string_view>

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kLog =
    "eth0 link up\n"
    "eth1 carrier lost\n"
    "wlan0 beacon missed\n"
    "eth1 carrier lost\n"
    "eth1 link up\n";

// count_lost tells how many interfaces of a log have lost their carrier.
void count_lost(coir::Deadline deadline) {
  const char* const lost[] = {"grep", "lost", nullptr};
  const char* const sorted[] = {"sort", nullptr};
  const char* const once[] = {"uniq", nullptr};
  const coir::Command commands[] = {
      {.argv = lost, .input = coir::Input::bytes(kLog)}, {.argv = sorted}, {.argv = once}};
  char text[64];
  coir::Exit exits[3];
  const auto ran = coir::run_pipeline(commands, {.out = text}, exits, deadline);
  if (!ran) {
    printf("no answer: %s\n", coir::describe(ran.error()));
    return;
  }
  printf("%.*s", static_cast<int>(ran->out_bytes), text);
  for (const coir::Exit& each : exits) printf("exit status %d\n", each.status);
}

void wait_for_ever(coir::Deadline deadline) {
  const char* const sleeper[] = {"sleep", "1000", nullptr};
  const char* const cat[] = {"cat", nullptr};
  const coir::Command commands[] = {{.argv = sleeper}, {.argv = cat}};
  char text[64];
  const auto ran = coir::run_pipeline(commands, {.out = text}, {}, deadline);
  printf("a pipeline without end: %s\n", ran ? "done" : coir::describe(ran.error()));
}

void miss_one() {
  const char* const missing[] = {"/no/such/program", nullptr};
  const auto ran = coir::run_process({.argv = missing});
  printf("a program that is missing: %s\n", ran ? "done" : coir::describe(ran.error()));
}

}  // namespace

int main() {
  return coir::run([] {
    count_lost(coir::Deadline::after(30s));
    wait_for_ever(coir::Deadline::after(50ms));
    miss_one();
  });
}
