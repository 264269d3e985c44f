// Two addresses fetched at once: `all` returns both answers, or the first error, and cancels what is still under way.

#include <coir/all.h>
#include <coir/http/client.h>
#include <coir/runtime.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;

namespace {

// fetch returns how many bytes there are at an address.
std::expected<std::size_t, coir::Error> fetch(std::string_view url) {
  auto response = coir::http::get(url, {.deadline = coir::Deadline::after(2s)});
  if (!response) return std::unexpected(response.error());
  if (auto good = response->expect_success(); !good) return std::unexpected(good.error());
  auto text = response->text();
  if (!text) return std::unexpected(text.error());
  return text->size();
}

}  // namespace

int main() {
  return coir::run([] {
    const LocalSite site;
    const std::string_view one = site.url("/one");
    const std::string_view three = site.url("/three");
    const auto both = coir::all([&] { return fetch(one); }, [&] { return fetch(three); });
    coir::on_worker_stack([&] {
      if (!both) {
        printf("failed: %s\n", coir::describe(both.error()));
      } else {
        printf("%zu and %zu bytes\n", std::get<0>(*both), std::get<1>(*both));
      }
    });
  });
}
