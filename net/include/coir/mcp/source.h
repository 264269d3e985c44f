#pragma once

#include <coir/mcp/call.h>

#include <cstdint>
#include <string_view>

namespace coir::mcp {

// ItemKind is what a server lists.
enum class ItemKind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::size_t kItemKinds = 4;

// Items takes the items of a list, which may come page by page.
class Items {
 public:
  // add takes an item, a JSON object that is valid for that long. `name` is its name, a resource's URI. False: the page
  // is full, and the source may stop; it is asked for the rest from the start.
  virtual bool add(std::string_view name, std::string_view json) noexcept;

 protected:
  constexpr Items() noexcept = default;
  ~Items() = default;
};

// Source has tools, resources and prompts that a server offers beside its own: those of servers that are mounted. It
// outlives the server, and is asked by any fiber, by several at a time. Where a name is the server's own, too, the
// server's counts. Functions may wait, within the caller's scope.
class Source {
 public:
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // lists tells whether the source may have items of this kind at all.
  virtual bool lists(ItemKind kind) noexcept;
  // list hands out all items of a kind, in an order that stays. What cannot be had at the moment is left out.
  virtual void list(ItemKind kind, Items& into) noexcept;
  // owns tells whether a call of this name, or a read of this URI, is the source's. It does not wait.
  virtual bool owns(ItemKind kind, std::string_view name) noexcept;
  // forward answers a call for what the source owns: call.name() and `params`, the request's, of tools/call,
  // resources/read or prompts/get. It ends by result_json or refuse; progress and notify_json are for on the way.
  // After `input_required` the client's answers are in `params`.
  virtual void forward(Call& call, ItemKind kind, JsonView params) noexcept;
  // complete answers completion/complete for a prompt (prompts) or a template (templates) that the source owns.
  virtual void complete(Call& call, ItemKind kind, JsonView params) noexcept;

 protected:
  constexpr Source() noexcept = default;
  ~Source() = default;
};

}  // namespace coir::mcp
