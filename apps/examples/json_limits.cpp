// A device's settings are read from JSON; what is wrong with them is told by its path. The answer is written without a tree.

#include <coir/format.h>
#include <coir/json.h>
#include <coir/json_writer.h>
#include <stdio.h>

namespace {

void say(std::string_view line) {
  printf("%.*s\n", static_cast<int>(line.size()), line.data());
}

void set(std::string_view text) {
  char room[200];
  const auto document = coir::JsonDocument::parse(text, {.max_bytes = 1024, .max_depth = 4});
  if (!document) return say(coir::format(room, "byte ", document.error().offset, ": ", document.error().what));
  const coir::JsonView root = document->root();
  const auto sensor = root["sensor"].text(16);
  const auto low = root["limits"][0].integer<int>(-40, 125);
  const auto high = root["limits"][1].integer<int>(-40, 125);
  if (!sensor || !low || !high) return say(document->complaint(room));

  coir::JsonText answer(room);
  coir::JsonWriter out(answer);
  out.object().member("sensor", *sensor).name("limits").array().value(*low).value(*high).end();
  out.member("middle", coir::fixed((*low + *high) * 5, 1)).end();
  if (out.finish()) say(answer.view());
}

}  // namespace

int main() {
  set(R"({"sensor": "caf\u00e9", "limits": [-5, 30]})");
  set(R"({"sensor": "roof", "limits": [-5, 300]})");
  set(R"({"sensor": "roof", "limits": [-5]})");
  set(R"({"sensor": "roof", "limits": [-5, 30])");
  set("[[[[[[1]]]]]]");
}
