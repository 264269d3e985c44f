// A program of somebody else's: it uses each layer once, so that each has to link.

#include <stdio.h>

#include <coir/fiber.h>
#include <coir/net/address.h>
#include <coir/runtime.h>

int main() {
  return coir::run([] {
    int seen = 0;
    auto child = coir::spawn({.name = "child"}, [&] { seen = coir::Address::parse("127.0.0.1:80")->port(); });
    if (!child.join()) return 1;
    printf("%d\n", seen);
    return seen == 80 ? 0 : 1;
  });
}
