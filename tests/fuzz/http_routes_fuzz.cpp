// Any path: a route is found only for a path that its pattern matches, its parameters are decoded segments of the path, and
// a method that no route has is answered with the methods that some have.

#include <coir/http/routes.h>

#include <algorithm>

#include "require.h"

using namespace coir::http;

namespace {

void list(Exchange&) {}
void one(Exchange&, std::string_view) {}
void two(Exchange&, std::string_view, int) {}

using All = decltype(routes(get<"/">(list), get<"/a">(list), post<"/{name}">(one), get<"/a/{name}/{number}">(two),
                            put<"/a/{name}/{number}">(two), get<"/files/{path...}">(one),
                            mount<"/in">(routes(get<"/{name}">(one), del<"/{name...}">(one)))));
constexpr auto kRoutes = All::table();

bool is_clean(std::string_view segment) {
  return segment != "." && segment != ".." &&
         std::ranges::none_of(segment, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const auto method = static_cast<Method>(source.byte() % 9);
  const Exact memory(source.byte());
  const Exact path(source.rest());
  // parse_head refuses these before there is a path.
  if (std::ranges::any_of(path.view(), [](char c) { return (c >= 0 && c <= 0x20) || c == 0x7f; })) return 0;
  const RouteMatch match = find_route(kRoutes, method, path.view(), {memory.data(), memory.size()});
  if (match.status == 0) {
    require(match.route != nullptr && begins(path.view(), "/"));
    const bool serves = (match.route->methods & method_set(method)) != 0;
    require(serves || (method == Method::head && (match.route->methods & method_set(Method::get)) != 0));
    for (std::size_t i = 0; i < match.parameters.count; ++i) {
      std::string_view rest = match.parameters.values[i];
      const bool many = ends(match.route->pattern, "...}");
      require(many || !rest.empty());
      // A slash stands in the rest of a path only.
      require(many || rest.find('/') == rest.npos);
      while (!rest.empty()) {
        const std::size_t slash = std::min(rest.find('/'), rest.size());
        require(is_clean(std::string_view(rest.data(), slash)));
        rest.remove_prefix(std::min(slash + 1, rest.size()));
      }
    }
  } else {
    require(match.route == nullptr);
    require(match.status == 400 || match.status == 404 || match.status == 405 || match.status == 414);
    require((match.allowed != 0) == (match.status == 405));
    require((match.allowed & method_set(method)) == 0);
    // More memory changes nothing but 414.
    const Exact more(path.size());
    const RouteMatch again = find_route(kRoutes, method, path.view(), {more.data(), more.size()});
    require(again.status != 414 && (match.status == 414 || again.status == match.status));
  }
  return 0;
}
