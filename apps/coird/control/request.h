#pragma once

#include <string_view>

#include "control.h"

// Request is the line of a client, in its words. Those that it lacks are empty.
struct Control::Request {
  std::string_view protocol, verb, form, name, word;

  explicit Request(std::string_view line) noexcept;
  bool json() const noexcept { return form == "json"; }
};
