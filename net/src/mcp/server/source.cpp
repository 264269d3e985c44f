#include <coir/mcp.h>

namespace coir::mcp {

// source.cpp: what a source does that has nothing.

bool Items::add(std::string_view, std::string_view) noexcept {
  return false;
}

bool Source::lists(ItemKind) noexcept {
  return false;
}

void Source::list(ItemKind, Items&) noexcept {}

bool Source::owns(ItemKind, std::string_view) noexcept {
  return false;
}

std::expected<void, Error> Source::watch(std::string_view) noexcept {
  return {};
}

void Source::forward(Call& call, ItemKind, JsonView) noexcept {
  call.refuse(kInternalError, "nobody answers this");
}

void Source::complete(Call&, ItemKind, JsonView) noexcept {}

}  // namespace coir::mcp
