#pragma once

#include <coir/mcp/call.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::mcp {

// Complete suggests values for an argument of a prompt, or a parameter of a template: by call.suggest those that begin
// as `value` does. call.argument has what the client knows of the others.
using Complete = void(Call& call, std::string_view argument, std::string_view value);

// Resource is something that clients read by its URI.
//
//   void read_log(mcp::Call& call) { call.text(latest_lines()); }
//
//   constexpr mcp::Resource kResources[] = {
//       {.uri = "board://log", .name = "log", .media_type = "text/plain", .read = read_log},
//   };
struct Resource {
  std::string_view uri;
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::string_view media_type = {};
  std::span<const Icon> icons = {};
  void (*read)(Call& call) = nullptr;  // by call.text or call.blob
};

// ResourceTemplate is a family of resources: "board://pin/{number}". A {parameter} stands for one or more characters
// but '/'; call.argument("number") is what stood there.
struct ResourceTemplate {
  std::string_view uri_template;
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::string_view media_type = {};
  std::span<const Icon> icons = {};
  void (*read)(Call& call) = nullptr;
  Complete* complete = nullptr;
};

}  // namespace coir::mcp
