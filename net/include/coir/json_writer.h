#pragma once

// JSON, written piece by piece.
//
//   JsonWriter out(exchange);                         // of a handler, after begin_json; or memory of the caller's
//   out.object().member("name", "kitchen").member("celsius", fixed(21500, 3));
//   out.name("readings").array();
//   for (int each : {1, 2, 3}) out.value(each);
//   out.end().end();
//   if (auto written = out.finish(); !written) return complain(written.error());

#include <coir/error.h>
#include <coir/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

// JsonWriter writes JSON piece by piece to whatever has a write of bytes, such as http::Exchange: no tree, no memory
// that grows with the text.
//
// Commas and quotes are its own. Text is escaped as json_quoted (coir/format.h) does: what is no UTF-8 becomes U+FFFD.
// The first failure of the sink is kept; what follows is dropped, and finish returns it. A call that JSON does not allow
// (a value without a name in an object, an end too many) is a mistake of the program and ends it with a line. Takes less
// than 1.2 KB of stack, itself included, besides the sink's; with floating point less than 2 KB.
class JsonWriter {
 public:
  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kGathered = 512;

  // The sink must outlive the writer, and gets pieces of up to kGathered bytes, and longer ones of raw.
  template <class Sink>
    requires requires(Sink& sink, std::string_view text) {
      { sink.write(text) } -> std::same_as<std::expected<void, Error>>;
    }
  explicit JsonWriter(Sink& sink) noexcept
      : sink_(&sink),
        write_([](void* to, std::string_view text) noexcept { return static_cast<Sink*>(to)->write(text); }) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  // Writes the gathered bytes, if finish was not called.
  ~JsonWriter() { flush(); }

  // object and array begin one, as a value; end ends the innermost. Deeper than kMaxDepth is the error `limit`.
  JsonWriter& object() noexcept { return begin('{'); }
  JsonWriter& array() noexcept { return begin('['); }
  JsonWriter& end() noexcept;

  // name stands before each value of an object.
  JsonWriter& name(std::string_view name) noexcept;

  // value writes a text, true or false, a whole number, fixed() of one, or a double or float as the shortest number that
  // reads back the same (coir/format.h). NaN and the infinities, which JSON lacks, become null, as JavaScript has it.
  JsonWriter& value(std::string_view text) noexcept;
  JsonWriter& value(const char* text) noexcept { return value(std::string_view(text != nullptr ? text : "")); }
  template <std::same_as<bool> T>
  JsonWriter& value(T truth) noexcept {
    return raw(truth ? "true" : "false");
  }
  template <detail::WholeNumber T>
  JsonWriter& value(T number) noexcept {
    return value(fixed(number, 0));
  }
  JsonWriter& value(NumberPart number) noexcept;
  template <std::floating_point T>
  JsonWriter& value(T number) noexcept {
    return floating(number);
  }
  JsonWriter& null() noexcept { return raw("null"); }
  // raw writes a value that is JSON already.
  JsonWriter& raw(std::string_view json) noexcept;

  // member is a name with its value.
  template <class T>
  JsonWriter& member(std::string_view its_name, const T& its_value) noexcept {
    name(its_name);
    return value(its_value);
  }

  // finish writes what has been gathered and tells whether everything was written. Errors: those of the sink; limit
  // (deeper than kMaxDepth, or a fixed() of over 60 digits); invalid (an object or an array has no end, or nothing was
  // written).
  [[nodiscard]] std::expected<void, Error> finish() noexcept;

 private:
  JsonWriter& begin(char bracket) noexcept;
  void begin_value() noexcept;
  JsonWriter& floating(double number) noexcept;
  JsonWriter& floating(float number) noexcept;
  JsonWriter& floating(long double number) = delete;
  void quoted(std::string_view text) noexcept;
  void put(std::string_view text) noexcept;
  void flush() noexcept;
  void fail(ErrorCode code) noexcept {
    if (!failed()) failure_ = Error{code};
  }
  bool failed() const noexcept { return failure_.code != ErrorCode{}; }
  bool in_object() const noexcept { return depth_ > 0 && (objects_ >> (depth_ - 1) & 1) != 0; }

  void* sink_;
  std::expected<void, Error> (*write_)(void* sink, std::string_view text) noexcept;
  Error failure_{};            // code 0: none
  std::uint64_t objects_ = 0;  // a bit for each level: it is an object
  std::uint16_t gathered_bytes_ = 0;
  std::uint8_t depth_ = 0;
  bool comma_ = false;    // a value stands before on this level
  bool named_ = false;    // a name waits for its value
  bool written_ = false;  // a whole value was written
  char gathered_[kGathered];
};

// JsonText is a sink in the caller's memory.
//
//   char room[256];
//   JsonText text(room);
//   JsonWriter(text).object().member("ok", true).end();
//   show(text.view());
class JsonText {
 public:
  explicit JsonText(std::span<char> room) noexcept : room_(room) {}

  // write adds text. Error: limit (it does not fit; nothing of it is added).
  [[nodiscard]] std::expected<void, Error> write(std::string_view text) noexcept {
    if (text.size() > room_.size() - used_) return std::unexpected(Error{ErrorCode::limit});
    if (!text.empty()) std::memcpy(room_.data() + used_, text.data(), text.size());
    used_ += text.size();
    return {};
  }
  std::string_view view() const noexcept { return {room_.data(), used_}; }

 private:
  std::span<char> room_;
  std::size_t used_ = 0;
};

}  // namespace coir
