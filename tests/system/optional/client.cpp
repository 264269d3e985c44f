#include <coir/http/client.h>

using namespace coir;

extern "C" void use_client(std::string_view url, std::span<char> into) {
  auto response = http::get(url, {.deadline = Deadline::after(std::chrono::seconds(2))});
  if (!response || !response->expect_success()) return;
  while (auto got = response->read(into)) into = into.subspan(*got);
}
