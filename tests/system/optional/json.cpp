#include <coir/http/content.h>

using namespace coir;

extern "C" void use_json(http::Exchange& exchange) {
  auto document = http::read_json(exchange);
  if (!document) return;
  const JsonView root = document->root();
  const auto name = root["name"].text(32);
  const auto high = root["limits"][1].integer<int>(-40, 125);
  const auto low = root["low"].integer<unsigned>();
  const auto factor = root["factor"].number();
  const auto on = root["on"].boolean();
  if (!root.only({"name", "limits", "low", "factor", "on", "labels"}) || !name || !high || !low || !factor || !on) {
    return http::refuse_json(exchange, *document);
  }
  if (!http::begin_json(exchange)) return;
  JsonWriter out(exchange);
  out.object().member("name", *name).member("high", *high).member("on", *on && *factor > 1).name("labels").array();
  for (const auto [label, value] : root["labels"].members()) out.value(label);
  for (const JsonView each : root["limits"].elements()) out.value(each.size());
  out.end().end();
  static_cast<void>(out.finish());
}
