// A machine that is found by name: `mdns board` answers for board.local and offers a web server on port 80, until it is
// ended; then it says goodbye. Without an argument it tells which names it would take.

#include <coir/net/mdns.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>
#include <stdio.h>

#include <string_view>

namespace {

void tell(std::string_view name) {
  printf("found as %.*s.local\n", static_cast<int>(name.size()), name.data());
}

void consider(const char* name) {
  const char* bad = coir::mdns::bad_name(name);
  printf("%s: %s\n", name, bad == nullptr ? "a name to be found by" : bad);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    consider("board");
    consider("board.local");
    consider("-board");
    return 0;
  }
  const char* const name = arguments[1];
  return coir::run([name] {
    static constexpr std::string_view kText[] = {"path=/"};
    static constexpr coir::mdns::Service kServices[] = {{.type = "_http._tcp", .port = 80, .text = kText}};
    coir::Fiber answering = coir::spawn({.name = "mdns"}, [name] {
      const auto served = coir::mdns::serve({.name = name, .services = kServices, .named = tell});
      if (served.error() != coir::ErrorCode::cancelled) printf("%s\n", coir::describe(served.error()));
    });
    static_cast<void>(coir::wait_signal({SIGINT, SIGTERM}));
    static_cast<void>(answering.cancel());
    static_cast<void>(answering.join());
  });
}
