// A worker that parses what came from outside: it has messages and nothing else, for files, network and processes are
// denied to it. Where the kernel cannot deny them the program goes on with a worker that is merely isolated.

#include <coir/isolate.h>
#include <coir/runtime.h>
#include <stdio.h>
#include <string.h>

using coir::Deny;
using coir::IsolatePort;

namespace {

struct Text {
  char bytes[60];
};

struct Count {
  int letters, digits;
};

// parse counts what a text is made of, until its owner closes.
void parse(IsolatePort& port) {
  while (auto text = port.receive<Text>()) {
    Count count{};
    for (const char* at = text->bytes; *at != '\0'; ++at) {
      count.letters += *at >= 'a' && *at <= 'z';
      count.digits += *at >= '0' && *at <= '9';
    }
    if (!port.send(count)) return;
  }
}

}  // namespace

int main() {
  return coir::run([]() -> std::expected<void, coir::Error> {
    auto worker = coir::Isolate::spawn(&parse, {.deny = Deny::net | Deny::fs | Deny::process});
    if (!worker && worker.error() == coir::ErrorCode::unsupported) worker = coir::Isolate::spawn(&parse);
    if (!worker) return std::unexpected(worker.error());

    for (const char* line : {"room 101", "a1b2c3", "no digits"}) {
      Text text{};
      strncpy(text.bytes, line, sizeof text.bytes - 1);
      if (auto sent = worker->send(text); !sent) return sent;
      auto count = worker->receive<Count>(coir::Deadline::after(std::chrono::seconds(10)));
      if (!count) return std::unexpected(count.error());
      printf("\"%s\": %d letters, %d digits\n", line, count->letters, count->digits);
    }
    worker->close();
    auto ended = worker->await();
    printf("the worker %s\n", ended ? "has ended" : coir::describe(ended.error()));
    return {};
  });
}
