// Fifty addresses, eight at a time, two seconds for all of them: the scope's deadline reaches into every request.

#include <coir/all.h>
#include <coir/cancel_scope.h>
#include <coir/http/client.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <array>

#include "local_site.h"

using namespace std::chrono_literals;

int main() {
  return coir::run([] {
    const LocalSite site;
    static std::array<std::array<char, 64>, 50> addresses;
    static std::array<std::size_t, 50> sizes;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      coir::format(addresses[i], "http://127.0.0.1:", site.port(), "/reading/", i, '\0');
    }
    const auto fetched = coir::with_timeout(2s, [&] {
      return coir::all_of(std::span(addresses), std::span(sizes),
                          [](const std::array<char, 64>& address) -> std::expected<std::size_t, coir::Error> {
                            auto response = coir::http::get(address.data());
                            if (!response) return std::unexpected(response.error());
                            auto text = response->text();
                            if (!text) return std::unexpected(text.error());
                            return text->size();
                          },
                          {.limit = 8});
    });
    std::size_t total = 0;
    for (const std::size_t size : sizes) total += size;
    coir::on_worker_stack([&] {
      if (!fetched) printf("failed: %s\n", coir::describe(fetched.error()));
      printf("%zu bytes from %zu addresses\n", total, sizes.size());
    });
  });
}
