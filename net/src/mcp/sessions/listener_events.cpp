#include <coir/format.h>

#include "mcp/sessions/listeners.h"

namespace coir::mcp {
namespace {

// listener_events.cpp: what a listener is sent.

constexpr std::string_view kListMethods[kLists] = {
    "notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed"};

void write_subscription(JsonWriter& out, const Listener& one) noexcept {
  write_id(out.name("_meta").object().name(kSubscriptionKey), one.id());
  out.end();
}

// Into writes an event around a message.
class Into {
 public:
  explicit Into(std::span<char> room) noexcept : text_(room) {}

  [[nodiscard]] std::expected<void, Error> write(std::string_view text) noexcept { return text_.write(text); }
  void put(std::string_view text) noexcept { static_cast<void>(text_.write(text)); }
  std::string_view view() const noexcept { return text_.view(); }

 private:
  JsonText text_;
};

}  // namespace

std::string_view write_acknowledged(const Listener& one, std::span<char> out) noexcept {
  Into into(out);
  into.put("data: ");
  {
    JsonWriter writer(into);
    begin_notification(writer, "notifications/subscriptions/acknowledged");
    write_subscription(writer, one);
    writer.name("notifications").object();
    if ((one.own.filter & kToolsBit) != 0) writer.member("toolsListChanged", true);
    if ((one.own.filter & kPromptsBit) != 0) writer.member("promptsListChanged", true);
    if ((one.own.filter & kResourcesBit) != 0) writer.member("resourcesListChanged", true);
    if (one.own.watched != nullptr) {
      writer.name("resourceSubscriptions").array();
      for (const Watched* each = one.own.watched; each != nullptr; each = each->next) writer.value(each->uri());
      writer.end();
    }
    writer.end().end().end();
    if (!writer.finish()) return {};
  }
  into.put("\n\n");
  return into.view();
}

std::string_view write_news(const Listener& one, std::span<char> out) noexcept {
  Into into(out);
  if (one.session != nullptr) {
    char line[32];
    into.put(format(line, "id: 0-", one.number, "\n"));
  }
  into.put("data: ");
  {
    JsonWriter writer(into);
    if (one.item == Listener::Item::watched) {
      begin_notification(writer, "notifications/resources/updated").member("uri", one.current->uri());
    } else {
      begin_notification(writer, kListMethods[static_cast<unsigned>(one.item) - 1]);
    }
    if (one.session == nullptr) write_subscription(writer, one);
    writer.end().end();
  }
  into.put("\n\n");
  return into.view();
}

std::string_view write_last(const Listener& one, std::span<char> out) noexcept {
  Into into(out);
  into.put("data: ");
  {
    JsonWriter writer(into);
    write_id(begin_message(writer).name("id"), one.id());
    writer.name("result").object().member("resultType", "complete");
    write_subscription(writer, one);
    writer.end().end();
  }
  into.put("\n\n");
  return into.view();
}

}  // namespace coir::mcp
