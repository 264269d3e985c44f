#pragma once

#include <coir/http/upstreams.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// FieldChanges is what a route does to the fields of a head: ForwardRules's lines and drops.
struct FieldChanges {
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kLineBytes = 128;

  std::string_view names[kMost] = {};  // dropped, those that are set among them
  std::size_t count = 0;
  std::size_t size = 0;
  char memory[kLineBytes];  // "Name: value\r\n" of each field that is set

  std::span<const std::string_view> drops() const noexcept { return {names, count}; }
  std::string_view lines() const noexcept { return {memory, size}; }
};

// RouteLine is one line of a file of routes:
//
//   PREFIX URL[,URL...] [KEY=VALUE]...
//
// Its views point into the line.
struct RouteLine {
  std::string_view prefix = {};
  std::string_view urls = {};   // separated by commas; parse_route_line does not look at them
  std::string_view hosts = {};  // host=A[,B...]: whom the client asks; empty: anybody
  std::string_view host = {};   // send-host=NAME: what the upstream is told as Host; empty: what the client said
  Balance balance = Balance::round_robin;        // balance=turn or balance=least
  unsigned char weights[Upstreams::kMost] = {};  // weights=N[,N...], one for each URL, 1 to 100; not given: 0
  FieldChanges request;   // set-request=NAME:VALUE, drop-request=NAME, FieldChanges::kMost of both
  FieldChanges response;  // the same with -response

  // admits tells whether the route is for a client that asks `authority`: a host, in any case, maybe with a port.
  bool admits(std::string_view authority) const noexcept;
};

// RouteFault says which word of a line is wrong, and the cure.
struct RouteFault {
  std::string_view word;
  const char* what;
  const char* cure;
};

// parse_route_line reads a line without its end into `route`, which is new. False: the line is empty or a comment, which
// begins with '#'. A field that frames, routes or belongs to one hop can be neither set nor dropped.
[[nodiscard]] std::expected<bool, RouteFault> parse_route_line(std::string_view line, RouteLine& route) noexcept;

}  // namespace coir::http
