// An isolate parses text that came from outside. Files, network and processes are denied to it; it has messages and
// nothing else. If the kernel cannot deny them, the program goes on with an isolate without denials.

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
    auto isolate = coir::Isolate::spawn(&parse, {.deny = Deny::net | Deny::fs | Deny::process});
    if (!isolate && isolate.error() == coir::ErrorCode::unsupported) isolate = coir::Isolate::spawn(&parse);
    if (!isolate) return std::unexpected(isolate.error());

    for (const char* line : {"room 101", "a1b2c3", "no digits"}) {
      Text text{};
      strncpy(text.bytes, line, sizeof text.bytes - 1);
      if (auto sent = isolate->send(text); !sent) return sent;
      auto count = isolate->receive<Count>(coir::Deadline::after(std::chrono::seconds(10)));
      if (!count) return std::unexpected(count.error());
      printf("\"%s\": %d letters, %d digits\n", line, count->letters, count->digits);
    }
    isolate->close();
    auto ended = isolate->await();
    printf("the isolate %s\n", ended ? "has ended" : coir::describe(ended.error()));
    return {};
  });
}
