// A program of somebody else's: it uses each layer once, so that each has to link.

#include <stdio.h>

#include <coir/fiber.h>
#include <coir/net/address.h>
#include <coir/runtime.h>

#include <vector>

int main() {
  return coir::run([] {
    std::vector<int> seen;
    auto child = coir::spawn({.name = "child"}, [&] { seen.push_back(coir::Address::parse("127.0.0.1:80")->port()); });
    if (!child.join()) return 1;
    printf("%d\n", seen.at(0));
    return seen[0] == 80 ? 0 : 1;
  });
}
