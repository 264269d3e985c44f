// Addresses that parse_url accepts can be sent, and those that resolve_url writes are read or refused. Neither splits a
// request.

#include <coir/http/wire/url.h>

#include <algorithm>

#include "require.h"

namespace {

using namespace coir::http;

bool visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

void check(const Url& url) {
  require(url.port != 0 && !url.host.empty() && visible(url.host) && visible(url.authority) && visible(url.user_info));
  require(url.host.find_first_of("/?#@%[]") == std::string_view::npos);
  require(begins(url.path, "/") && visible(url.path) && visible(url.query));
  require(url.path.find_first_of("?#") == std::string_view::npos && url.query.find('#') == std::string_view::npos);
  require(same_origin(url, url));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const std::size_t cut = source.byte();
  const std::string_view rest = source.rest();
  const std::size_t half = std::min(cut, rest.size());
  const Exact first(std::string_view(rest.data(), half));
  const Exact second(std::string_view(rest.data() + half, rest.size() - half));
  const auto base = parse_url(first.view());
  if (!base) return 0;
  check(*base);
  char out[512];
  const auto resolved = resolve_url(*base, second.view(), out);
  if (!resolved) return 0;
  require(visible(*resolved));
  const auto again = parse_url(*resolved);
  if (!again) return 0;
  check(*again);
  // Nothing is left to resolve.
  char twice[512];
  const auto same = resolve_url(*base, *resolved, twice);
  require(same && same->size() == resolved->size() && std::equal(same->begin(), same->end(), resolved->begin()));
  return 0;
}
