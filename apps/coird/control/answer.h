#pragma once

#include <coir/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

// ControlAnswer writes the answer to a request of coirctl once, as text for people or as JSON.
//
//   ControlAnswer answer(room, json);
//   answer.member("count", 2).list("fibers");              count: 2            {"schema":1,"count":2,"fibers":[
//   answer.item().member("id", 1).end_item();              id=1                {"id":1}
//   answer.end_list();                                                         ]
//   send(answer.finish());                                                     }
class ControlAnswer {
 public:
  ControlAnswer(std::span<char> room, bool json) noexcept : out_(room), room_(room.size()), json_(json) {
    if (json_) out_.add("{\"schema\":1");
    first_ = false;
  }

  ControlAnswer& member(std::string_view name, std::string_view text) noexcept {
    begin(name);
    if (json_ || (in_item_ && needs_quotes(text))) {
      out_.add(coir::json_quoted(text));
    } else {
      out_.add(text);
    }
    return end();
  }
  ControlAnswer& member(std::string_view name, const char* text) noexcept {
    return member(name, std::string_view(text));
  }
  ControlAnswer& member(std::string_view name, std::integral auto number) noexcept {
    begin(name);
    out_.add(number);
    return end();
  }

  ControlAnswer& member(std::string_view name, bool truth) noexcept {
    begin(name);
    out_.add(truth);
    return end();
  }

  // list begins a list of items, each with members of its own, or of lines. In a text members come before the list.
  ControlAnswer& list(std::string_view name) noexcept {
    if (json_) out_.add(",\"", name, "\":[");
    first_ = true;
    return *this;
  }
  ControlAnswer& item() noexcept {
    if (json_) out_.add(first_ ? "{" : ",{");
    first_ = in_item_ = true;
    return *this;
  }
  void end_item() noexcept {
    out_.add(json_ ? "}" : "\n");
    first_ = in_item_ = false;
  }
  void line(std::string_view text) noexcept {
    if (json_) {
      out_.add(first_ ? "" : ",", coir::json_quoted(text));
    } else {
      out_.add(text, "\n");
    }
    first_ = false;
  }
  void end_list() noexcept {
    if (json_) out_.add("]");
    first_ = false;
  }

  // array begins a list of texts as a member of an item; a text has them separated by commas.
  ControlAnswer& array(std::string_view name) noexcept {
    begin(name);
    if (json_) out_.add("[");
    first_ = true;
    return *this;
  }
  void element(coir::HexPart number) noexcept {
    out_.add(first_ ? "" : ",", json_ ? "\"0x" : "0x", number, json_ ? "\"" : "");
    first_ = false;
  }
  void end_array() noexcept {
    if (json_) out_.add("]");
    first_ = false;
  }

  // has_room tells whether so many bytes more fit.
  bool has_room(std::size_t bytes) const noexcept { return out_.needed() + bytes <= room_; }

  // finish returns the whole text; empty: it does not fit.
  std::string_view finish() noexcept {
    if (json_) out_.add("}\n");
    return out_.fits() ? out_.text() : std::string_view();
  }

 private:
  // needs_quotes tells whether a value of key=value would not read back as it is.
  static bool needs_quotes(std::string_view text) noexcept {
    return text.empty() || std::ranges::any_of(text, [](char c) {
             return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\x7f';
           });
  }
  void begin(std::string_view name) noexcept {
    if (json_) {
      out_.add(first_ ? "\"" : ",\"", name, "\":");
    } else {
      out_.add(in_item_ && !first_ ? " " : "", name, in_item_ ? "=" : ": ");
    }
    first_ = false;
  }
  ControlAnswer& end() noexcept {
    if (!json_ && !in_item_) out_.add("\n");
    return *this;
  }

  coir::Formatter out_;
  std::size_t room_;
  bool json_;
  bool first_ = false;  // of an object or a list: no comma
  bool in_item_ = false;
};
