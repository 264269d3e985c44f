// Any line of a file of routes is a route that can be used, nothing, or a fault that names a word of the line. The values
// that it sets cannot split a head, and it trusts only peers that it names.

#include <coir/http/proxy_table.h>
#include <coir/http/wire/url.h>

#include <algorithm>

#include "proxy/field_kind.h"
#include "proxy/routes/route_servers.h"
#include "proxy/routes/route_values.h"
#include "require.h"

using namespace coir::http;

namespace {

bool lies_in(std::string_view part, std::string_view whole) {
  return part.data() == nullptr ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check(const RouteFault& fault, std::string_view line) {
  require(lies_in(fault.word, line) && fault.what[0] != '\0' && fault.cure[0] != '\0');
}

void check(const FieldChanges& changes) {
  require(changes.count <= FieldChanges::kMost && changes.size <= FieldChanges::kLineBytes);
  for (const std::string_view name : changes.drops()) require(kind_of(name) == FieldKind::passed);
  // Each line ends by CRLF, and there is no other control.
  const std::string_view lines = changes.lines();
  std::size_t count = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const auto byte = static_cast<unsigned char>(lines[at]);
    if (byte >= ' ' && byte != 0x7f) continue;
    require(byte == '\r' && at + 1 < lines.size() && lines[at + 1] == '\n');
    ++count;
    ++at;
  }
  require(count <= changes.count && (lines.empty() || ends(lines, "\r\n")));
}

void check_servers_of(const RouteLine& route, std::string_view line) {
  const auto secure = check_servers(route.prefix, route.urls);
  if (!secure) return check(secure.error(), line);
  require(!climbs(route.prefix) && rest_below(route.prefix, route.prefix) == std::string_view());
  std::size_t count = 0;
  for (std::string_view rest = route.urls; !rest.empty(); ++count) {
    const std::string_view url = next_item(rest);
    require(begins(url, "unix:") ? coir::Address::parse(url).has_value() : parse_url(url).has_value());
  }
  require(count != 0 && count <= UpstreamServer::kMost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const Exact line(source.rest());
  RouteLine route;
  const auto parsed = parse_route_line(line.view(), route);
  if (!parsed) {
    check(parsed.error(), line.view());
    return 0;
  }
  if (!*parsed) return 0;
  for (const std::string_view part : {route.prefix, route.urls, route.hosts, route.host, route.auth, route.trust}) {
    require(lies_in(part, line.view()));
  }
  require(begins(route.prefix, "/") && !route.urls.empty() && route.auth.size() <= 255);
  check(route.request);
  check(route.response);
  check_servers_of(route, line.view());
  require(route.rate <= 1'000'000 && (route.rate == 0) == (route.burst == 0));
  for (const auto time : {route.connect, route.first_byte, route.idle, route.rest_idle}) {
    require(time.count() >= 0 && time.count() <= UINT32_MAX);
  }
  for (const unsigned char weight : route.weights) require(weight <= 100);
  // The line trusts only addresses that it names. The line as a field of a request is read without harm.
  const coir::Address peer = *coir::Address::parse("127.0.0.1:1");
  if (route.trust.empty()) require(!is_trusted(route.trust, peer));
  const Header field{.name = "X-Forwarded-For", .value = line.view()};
  static_cast<void>(client_behind(peer, route.trust, {&field, 1}));
  static_cast<void>(client_behind(peer, "0.0.0.0/0,::/0", {&field, 1}));
  static_cast<void>(route.admits(line.view()));
  // Again it says the same.
  RouteLine again;
  require(parse_route_line(line.view(), again).value_or(false));
  require(again.prefix.data() == route.prefix.data() && again.request.size == route.request.size);
  return 0;
}
