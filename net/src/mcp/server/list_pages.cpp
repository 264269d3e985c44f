#include <coir/format.h>

#include <charconv>

#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// list_pages.cpp: lists, page by page, for incoming.h.

constexpr std::string_view kNames[kItemKinds] = {"tools", "resources", "resourceTemplates", "prompts"};

void put_text(Text& out, const char* name, std::string_view value) noexcept {
  if (value.empty()) return;
  member(out, name);
  put_quoted(out, value);
}

void put_icons(const Incoming& in, Text& out, std::span<const Icon> icons) noexcept {
  if (icons.empty() || in.version < Version::v2025_11_25) return;
  member(out, "icons");
  const char* comma = "[";
  for (const Icon& each : icons) {
    put(out, comma);
    comma = ",";
    put(out, "{");
    put_text(out, "src", each.source);
    put_text(out, "mimeType", each.media_type);
    if (!each.sizes.empty()) {
      member(out, "sizes");
      put(out, "[");
      put_quoted(out, each.sizes);
      put(out, "]");
    }
    put(out, "}");
  }
  put(out, "]");
}

void put_title(const Incoming& in, Text& out, std::string_view title) noexcept {
  if (in.version >= Version::v2025_06_18) put_text(out, "title", title);
}

void put_item(const Incoming& in, Text& out, const Tool& tool) noexcept {
  const ToolMarks& marks = tool.marks;
  put_text(out, "name", marks.name);
  put_title(in, out, marks.title);
  put_text(out, "description", marks.description);
  member(out, "inputSchema");
  put(out, tool.input_schema);
  if (!tool.output_schema.empty() && in.version >= Version::v2025_06_18) {
    member(out, "outputSchema");
    put(out, tool.output_schema);
  }
  member(out, "annotations");
  put(out, marks.read_only ? R"({"readOnlyHint":true)" : R"({"readOnlyHint":false)");
  if (!marks.read_only) {
    put(out, marks.destructive ? R"(,"destructiveHint":true)" : R"(,"destructiveHint":false)");
    put(out, marks.idempotent ? R"(,"idempotentHint":true)" : R"(,"idempotentHint":false)");
  }
  put(out, marks.open_world ? R"(,"openWorldHint":true})" : R"(,"openWorldHint":false})");
  put_icons(in, out, marks.icons);
}

template <class Item>
void put_described(const Incoming& in, Text& out, const Item& each) noexcept {
  put_text(out, "name", each.name);
  put_title(in, out, each.title);
  put_text(out, "description", each.description);
  put_text(out, "mimeType", each.media_type);
  put_icons(in, out, each.icons);
}

void put_item(const Incoming& in, Text& out, const Resource& each) noexcept {
  put_text(out, "uri", each.uri);
  put_described(in, out, each);
}

void put_item(const Incoming& in, Text& out, const ResourceTemplate& each) noexcept {
  put_text(out, "uriTemplate", each.uri_template);
  put_described(in, out, each);
}

void put_item(const Incoming& in, Text& out, const Prompt& each) noexcept {
  put_text(out, "name", each.name);
  put_title(in, out, each.title);
  put_text(out, "description", each.description);
  put_icons(in, out, each.icons);
  if (each.arguments.empty()) return;
  member(out, "arguments");
  const char* comma = "[";
  for (const PromptArgument& argument : each.arguments) {
    put(out, comma);
    comma = ",";
    put(out, "{");
    put_text(out, "name", argument.name);
    put_text(out, "description", argument.description);
    member(out, "required");
    put(out, argument.required ? "true" : "false");
    put(out, "}");
  }
  put(out, "]");
}

// Page gathers a page's items: the first `skip` belong to pages before.
class Page final : public Items {
 public:
  Page(Incoming& in, Text& out, ItemKind kind, std::size_t skip) noexcept
      : in_(in), out_(out), kind_(kind), skip_(skip), left_(in.core.options.page_items) {}

  bool add(std::string_view name, std::string_view json) noexcept override {
    // The server's own counts where two have a name.
    if (is_own(name)) return true;
    if (!begin()) return !more_;
    put(out_, json);
    return true;
  }

  // begin tells whether an item is on this page, and writes the comma before it.
  bool begin() noexcept {
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    if (left_ == 0) {
      more_ = true;
      return false;
    }
    --left_;
    ++shown_;
    if (out_.view().back() != '[') put(out_, ",");
    return true;
  }

  bool more() const noexcept { return more_; }
  std::size_t shown() const noexcept { return shown_; }
  bool past_end() const noexcept { return skip_ > 0; }

 private:
  bool is_own(std::string_view name) const noexcept {
    switch (kind_) {
      case ItemKind::tools:
        for (const Tool& each : in_.core.options.tools) {
          if (each.marks.name == name) return true;
        }
        return false;
      case ItemKind::resources:
        return in_.core.find_resource(name) != nullptr;
      case ItemKind::templates:
        return in_.core.find_template(name) != nullptr;
      case ItemKind::prompts:
        return in_.core.find_prompt(name) != nullptr;
    }
    return false;
  }

  Incoming& in_;
  Text& out_;
  ItemKind kind_;
  std::size_t skip_;
  std::size_t left_;
  std::size_t shown_ = 0;
  bool more_ = false;
};

template <class T>
void add_own(Incoming& in, Text& out, Page& page, const T& item) noexcept {
  if (!page.begin()) return;
  put(out, "{");
  put_item(in, out, item);
  put(out, "}");
}

void add_all(Incoming& in, Text& out, ItemKind kind, Page& page) noexcept {
  const McpServerOptions& options = in.core.options;
  switch (kind) {
    case ItemKind::tools:
      for (std::size_t i = 0; i < options.tools.size(); ++i) {
        if (in.core.is_on(i)) add_own(in, out, page, options.tools[i]);
      }
      break;
    case ItemKind::resources:
      for (const Resource& each : options.resources) add_own(in, out, page, each);
      break;
    case ItemKind::templates:
      for (const ResourceTemplate& each : options.templates) add_own(in, out, page, each);
      break;
    case ItemKind::prompts:
      for (const Prompt& each : options.prompts) add_own(in, out, page, each);
      break;
  }
  for (Source* const each : options.sources) {
    if (!page.more()) each->list(kind, page);
  }
}

}  // namespace

void answer_list(Incoming& in, ItemKind kind) noexcept {
  std::size_t skip = 0;
  if (const auto cursor = in.param("cursor")) {
    const auto text = text_of(cursor).value_or(std::string_view());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), skip);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || skip == 0) {
      return refuse(in, 200, kInvalidParams, "cursor: none of this server's");
    }
  }
  CancelScope scope(Deadline::after(in.core.options.call_deadline));
  Text out(in.room, in.core.options.max_result_bytes);
  begin_result(in, out);
  member(out, kNames[static_cast<std::size_t>(kind)]);
  put(out, "[");
  Page page(in, out, kind, skip);
  if (!out.failed()) add_all(in, out, kind, page);
  put(out, "]");
  if (page.more()) {
    char digits[24];
    member(out, "nextCursor");
    put_quoted(out, format(digits, skip + page.shown()));
  }
  cacheable(in, out, in.core.options.list_lifetime.count(), in.core.options.private_lists);
  end_result(in, out);
  send_result(in, out);
}

}  // namespace coir::mcp
