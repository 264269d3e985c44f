#include <coir/http/routes.h>

#include <coir/config.h>
#if !COIR_NO_ASYNC
#include <coir/detail/fiber_name.h>
#endif

#include "http/text/characters.h"

namespace coir::http {
namespace {

// check_path decodes `path` if it holds any escape, and tells what no route may see: a status, or 0.
std::uint16_t check_path(std::string_view& path, std::span<char> memory) noexcept {
  if (path.empty() || path[0] != '/') return 400;
  if (path.find('%') != std::string_view::npos) {
    std::size_t size = 0;
    for (std::string_view rest = path; !rest.empty(); ++size) {
      const bool plain = rest[0] != '%';
      const int byte = take_decoded(rest);
      if (byte < 0x20 || byte == 0x7f) return 400;
      if (byte == '/' && !plain) return 404;
      if (size == memory.size()) return 414;
      memory[size] = static_cast<char>(byte);
    }
    path = {memory.data(), size};
  }
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view segment = detail::take_segment(rest);
    if (segment == "." || segment == ".." || (segment.empty() && !rest.empty())) return 404;
  }
  return 0;
}

bool fits(std::string_view pattern, std::string_view path, RouteParameters& parameters) noexcept {
  parameters.count = 0;
  while (!pattern.empty() && !path.empty()) {
    const detail::PatternSegment wanted = detail::take_pattern_segment(pattern);
    if (wanted.kind == detail::SegmentKind::rest) {
      parameters.values[parameters.count++] = after(path, 1);
      return true;
    }
    const std::string_view segment = detail::take_segment(path);
    if (wanted.kind == detail::SegmentKind::literal) {
      if (segment != wanted.text) return false;
    } else {
      if (segment.empty()) return false;
      parameters.values[parameters.count++] = segment;
    }
  }
  return pattern.empty() && path.empty();
}

// AllowLine is "Allow: GET, HEAD, OPTIONS\r\n".
class AllowLine {
 public:
  explicit AllowLine(MethodSet methods, std::span<const std::string_view> tokens = {}) noexcept {
    if ((methods & method_set(Method::get)) != 0) methods |= method_set(Method::head);
    methods |= method_set(Method::options);
    line_.fixed("Allow: ");
    bool first = true;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((methods >> bit & 1) == 0) continue;
      if (!first) line_.fixed(", ");
      first = false;
      line_.fixed(method_name(static_cast<Method>(bit)));
    }
    for (const std::string_view token : tokens) {
      if (token.empty()) break;
      line_.fixed(", ");
      line_.fixed(token);
    }
    line_.fixed("\r\n");
  }

  std::string_view text() const noexcept { return line_.lines(); }

 private:
  char memory_[200];
  ResponseHead line_{memory_};
};

void answer_options(Exchange& exchange, MethodSet methods, std::span<const std::string_view> tokens = {}) noexcept {
  exchange.start(204).fixed(AllowLine(methods, tokens).text());
  static_cast<void>(exchange.begin_empty());
}

}  // namespace

RouteMatch find_route(std::span<const Route> routes, Method method, std::string_view path, std::span<char> memory,
                      std::string_view token) noexcept {
  RouteMatch match;
  match.status = check_path(path, memory);
  if (match.status != 0) return match;
  MethodSet wanted = method_set(method);
  if (method == Method::head) wanted |= method_set(Method::get);
  std::size_t known = 0;
  for (const Route& route : routes) {
    if (!fits(route.pattern, path, match.parameters)) continue;
    if ((route.methods & wanted) != 0 && (method != Method::other || route.token.empty() || route.token == token)) {
      match.route = &route;
      return match;
    }
    match.allowed |= route.methods;
    if (!route.token.empty() && known < std::size(match.tokens)) match.tokens[known++] = route.token;
  }
  match.status = match.allowed != 0 ? 405 : 404;
  return match;
}

void detail::answer_by(std::span<const Route> routes, void* holder, Exchange& exchange) noexcept {
  const Request& request = exchange.request();
  if (request.form == Form::asterisk) {
    MethodSet all = 0;
    for (const Route& route : routes) all |= route.methods;
    return answer_options(exchange, all);
  }
  // Memory that is taken stays with a handler that waits, and its buffers with it.
  const bool escaped = request.path.find('%') != std::string_view::npos;
  const std::span<char> memory = escaped ? exchange.path_memory() : std::span<char>();
  const RouteMatch match = find_route(routes, request.method, request.path, memory, request.method_text);
  if (match.status == 0) {
#if !COIR_NO_ASYNC
    const coir::detail::NameWhile named(match.route->pattern.data());
#endif
    match.route->call(holder, exchange, match.parameters);
  } else if (match.status != 405) {
    exchange.respond_status(match.status);
  } else if (request.method == Method::options) {
    answer_options(exchange, match.allowed, match.tokens);
  } else {
    exchange.respond_status(405, AllowLine(match.allowed, match.tokens).text());
  }
}

}  // namespace coir::http
