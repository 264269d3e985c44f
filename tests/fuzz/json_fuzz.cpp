// A document is the same in any memory that holds it; whatever is asked of it is answered; what is written from it is JSON again
// and says the same.

#include <coir/json.h>
#include <coir/json_writer.h>

#include <algorithm>

#include "require.h"

using namespace coir;

namespace {

constexpr std::size_t kDepth = 12;

// write copies a value, and asks everything of it on the way.
void write(JsonWriter& out, JsonView view, std::size_t depth) {
  require(depth <= kDepth);
  require(view.kind().has_value());
  switch (*view.kind()) {
    case JsonKind::null:
      out.null();
      break;
    case JsonKind::boolean:
      out.value(*view.boolean());
      break;
    case JsonKind::number:
      require(view.number().has_value());
      if (const auto number = view.integer<std::int64_t>()) {
        out.value(*number);
      } else if (const auto large = view.integer<std::uint64_t>()) {
        out.value(*large);
      } else {
        out.value("a fraction");
      }
      break;
    case JsonKind::text:
      require(view.text()->size() <= 4096);
      out.value(*view.text());
      break;
    case JsonKind::array: {
      std::size_t seen = 0;
      out.array();
      for (const JsonView each : view.elements()) {
        require(view[seen].kind() == each.kind());
        ++seen;
        write(out, each, depth + 1);
      }
      out.end();
      require(seen == view.size() && !view[seen].kind());
      break;
    }
    case JsonKind::object: {
      std::size_t seen = 0;
      out.object();
      for (const auto [name, value] : view.members()) {
        ++seen;
        require(view[name].kind().has_value());
        out.name(name);
        write(out, value, depth + 1);
      }
      out.end();
      require(seen == view.size());
      break;
    }
  }
}

// Complaints name a path wherever they are made.
void complain(const JsonDocument& document, JsonView view, unsigned steps) {
  for (; steps != 0 && view.size() != 0; steps /= 4) {
    JsonView next = view;
    std::size_t at = 0;
    if (view.kind() == JsonKind::array) {
      next = view[steps % view.size()];
    } else {
      for (const auto [name, value] : view.members()) {
        if (at++ == steps % view.size()) next = value;
      }
    }
    view = next;
  }
  if (view.kind() == JsonKind::text) {
    require(!view.boolean());
  } else {
    require(!view.text());
  }
  require(!document.sound());
  char room[160];
  require(!document.complaint(room).empty());
  require(document.complaint({room, 3}).size() <= 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const unsigned steps = source.byte();
  const std::size_t part = source.byte();
  const Exact text(source.rest());
  const JsonLimits limits = {.max_bytes = 4096, .max_depth = kDepth};
  const std::size_t needed = JsonDocument::bytes_needed(text.view());
  auto document = JsonDocument::parse(text.view(), limits);
  require(document || document.error().offset <= std::max(text.view().size(), limits.max_bytes));

  // In memory of its own: enough of it, or too little.
  const Exact enough(needed);
  const auto inside = JsonDocument::parse(text.view(), {enough.data(), needed}, limits);
  require(inside.has_value() == document.has_value());
  if (!inside) {
    require(inside.error().error == document.error().error && inside.error().offset == document.error().offset);
  }
  const Exact less(needed * part / 256);
  static_cast<void>(JsonDocument::parse(text.view(), {less.data(), less.size()}, limits));
  if (!document) return 0;

  static char first[65'536];
  static char second[65'536];
  JsonText one(first);
  JsonWriter out(one);
  write(out, document->root(), 0);
  require(out.finish().has_value());
  const auto again = JsonDocument::parse(one.view(), {.max_bytes = sizeof first, .max_depth = kDepth});
  require(again.has_value());
  JsonText two(second);
  JsonWriter more(two);
  write(more, again->root(), 0);
  require(more.finish().has_value() && one.view() == two.view());
  complain(*again, again->root(), steps);
  return 0;
}
