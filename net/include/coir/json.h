#pragma once

// JSON, parsed in memory of a known size.
//
//   auto document = JsonDocument::parse(R"({"limits":{"high":40}})");
//   if (!document) return complain(document.error());
//   const auto high = document->root()["limits"]["high"].integer<int>(-40, 125);
//   if (!high) return complain(document->complaint(buffer));      // "limits.high: missing" or what else is wrong

#include <coir/config.h>
#include <coir/error.h>
#include <coir/format.h>
#include <coir/ledger.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#if !COIR_JSON
#error "this build of coir has no JSON: configure it with -DCOIR_JSON=ON"
#endif

namespace coir {

namespace account {
extern Account json;  // documents that were parsed without memory of the caller's
}

namespace detail {
struct JsonState;
struct JsonValue;
}  // namespace detail

class JsonView;
class JsonWriter;
void copy_json(JsonWriter& out, JsonView value) noexcept;  // of coir/json_fields.h

// JsonLimits bounds a text before it is parsed.
struct JsonLimits {
  std::size_t max_bytes = 16 * 1024;
  std::size_t max_depth = 16;  // of arrays and objects inside each other; SIZE_MAX: any
};

// JsonFlaw tells why a text was not taken.
struct JsonFlaw {
  Error error;
  std::size_t offset = 0;  // the byte where it is wrong
  const char* what = "";   // static, such as "unexpected character"
};

enum class JsonKind : std::uint8_t { null, boolean, number, text, array, object };

// JsonView is one value of a document, or the place where one is missing. Asking for a missing member or a wrong type is an
// error, and the first error is kept: JsonDocument::complaint names its path.
//
// A view is valid as long as its document. Its functions do not wait, take less than 500 bytes of stack, and belong to
// one fiber or thread at a time for each document.
class JsonView {
 public:
  // Errors of text, integer, number and boolean: not_found (the value is missing), invalid (it is of another kind, or
  // not within the bounds).
  //
  // text is a string, decoded, of at most `most` bytes; it may hold NUL. It lies in the document's memory.
  [[nodiscard]] std::expected<std::string_view, Error> text(std::size_t most = SIZE_MAX) const noexcept;
  // integer is a whole number from `least` to `most`. 5.0 and 5e0 are 5, as in JSON Schema. Errors: as text.
  template <detail::WholeNumber T>
  [[nodiscard]] std::expected<T, Error> integer(T least = std::numeric_limits<T>::min(),
                                                T most = std::numeric_limits<T>::max()) const noexcept {
    if constexpr (std::is_signed_v<T>) {
      const auto found = signed_integer(least, most);
      if (!found) return std::unexpected(found.error());
      return static_cast<T>(*found);
    } else {
      const auto found = unsigned_integer(least, most);
      if (!found) return std::unexpected(found.error());
      return static_cast<T>(*found);
    }
  }
  // number is any number, rounded to the nearest double. Errors: as text.
  [[nodiscard]] std::expected<double, Error> number() const noexcept;
  // Errors: as text.
  [[nodiscard]] std::expected<bool, Error> boolean() const noexcept;

  // kind is nullopt for a missing value.
  std::optional<JsonKind> kind() const noexcept;
  // size is how many elements an array or members an object has; 0 for everything else.
  std::size_t size() const noexcept;

  // operator[] is the member of that name (the first, where a name is repeated), or the element at that place: missing
  // if there is none, which is complained of once it is asked for something. Cost: a member is searched for in order.
  JsonView operator[](std::string_view name) const noexcept;
  JsonView operator[](std::size_t index) const noexcept;
  // find is for members that need not be there: nullopt without a complaint, also for a member that is null.
  std::optional<JsonView> find(std::string_view name) const noexcept;

  // only complains of a member with another name than these, and of one that is repeated. Errors: invalid, not_found
  // (the object is missing).
  std::expected<void, Error> only(std::initializer_list<std::string_view> names) const noexcept;

  // elements and members are for range-for. Both complain and are empty unless this is an array, or an object.
  //
  //   for (const JsonView each : view["limits"].elements()) ...
  //   for (const auto [name, value] : view["labels"].members()) ...
  class Elements;
  class Members;
  Elements elements() const noexcept;
  Members members() const noexcept;

 private:
  friend class JsonDocument;
  friend void copy_json(JsonWriter& out, JsonView value) noexcept;

  using Value = const detail::JsonValue;
  JsonView(detail::JsonState* state, Value* value) noexcept : state_(state), value_(value) {}
  Value* value() const noexcept { return is_missing() ? nullptr : value_; }
  bool is_missing() const noexcept { return name_ != nullptr || place_ != kPresent; }
  JsonView missing(const char* name, std::size_t place) const noexcept;
  std::unexpected<Error> complain(const char* wanted, const char* flaw = nullptr) const noexcept;
  std::unexpected<Error> complain_range(std::int64_t least, std::uint64_t most) const noexcept;
  std::expected<std::int64_t, Error> signed_integer(std::int64_t least, std::int64_t most) const noexcept;
  std::expected<std::uint64_t, Error> unsigned_integer(std::uint64_t least, std::uint64_t most) const noexcept;

  static constexpr std::size_t kPresent = SIZE_MAX;

  detail::JsonState* state_;
  Value* value_;  // of a missing value: what it is missing from
  // By which it was asked for, if it is missing: a name and its bytes, or null and its place among elements.
  const char* name_ = nullptr;
  std::size_t place_ = kPresent;
};

// Elements and Members are ranges with just what range-for wants.
class JsonView::Elements {
 public:
  class Iterator {
   public:
    JsonView operator*() const noexcept { return {state_, value_}; }
    Iterator& operator++() noexcept;
    bool operator!=(const Iterator& other) const noexcept { return left_ != other.left_; }

   private:
    friend class Elements;
    detail::JsonState* state_;
    Value* value_;
    std::size_t left_;
  };
  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  friend class JsonView;
  Elements(detail::JsonState* state, Value* array) noexcept : state_(state), array_(array) {}
  detail::JsonState* state_;
  Value* array_;  // null: none
};

class JsonView::Members {
 public:
  struct Member {
    std::string_view name;
    JsonView value;
  };
  class Iterator {
   public:
    Member operator*() const noexcept;
    Iterator& operator++() noexcept;
    bool operator!=(const Iterator& other) const noexcept { return left_ != other.left_; }

   private:
    friend class Members;
    detail::JsonState* state_;
    Value* name_;
    std::size_t left_;
  };
  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  friend class JsonView;
  Members(detail::JsonState* state, Value* object) noexcept : state_(state), object_(object) {}
  detail::JsonState* state_;
  Value* object_;
};

// JsonDocument is a JSON text (RFC 8259, UTF-8), parsed into memory of a known size.
//
//   auto document = JsonDocument::parse(text);
//   if (!document) return complain(document.error().offset, document.error().what);
//   const JsonView root = document->root();
//   const auto name = root["name"].text(32);
//   const auto high = root["limits"]["high"].integer<int>(-40, 125);
//   char room[120];
//   if (!name || !high) return complain(document->complaint(room));   // "limits.high: missing"
//
// Size and depth are bounded first; then yyjson reads the text, on the worker's stack, out of a fixed pool. Several
// workers may parse at once. A request's document is read by coir/http/content.h.
class JsonDocument {
 public:
  // parse without memory takes what it needs from the heap and charges it to account::json: the text, and 16 to 24
  // bytes for each value or name. parse into `memory`, which outlives the document, takes none; a text that stands at
  // the front of it already is not copied. Errors (JsonFlaw::error): invalid (not JSON), limit (longer or deeper than
  // `limits`, or more than `memory` holds), no_memory (a ceiling of the ledger).
  [[nodiscard]] static std::expected<JsonDocument, JsonFlaw> parse(std::string_view text,
                                                                   const JsonLimits& limits = {}) noexcept;
  [[nodiscard]] static std::expected<JsonDocument, JsonFlaw> parse(std::string_view text, std::span<char> memory,
                                                                   const JsonLimits& limits = {}) noexcept;
  // bytes_needed is how much memory is certain to hold this text and its document.
  [[nodiscard]] static std::size_t bytes_needed(std::string_view text) noexcept;

  JsonDocument(JsonDocument&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  JsonDocument& operator=(JsonDocument&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~JsonDocument();

  JsonView root() const noexcept;

  // complaint writes the first thing that was asked of a view and was not so, as one line without its end; empty if
  // there was none. sound tells whether it is empty.
  //
  //   limits[2].high: a whole number from -40 to 125 is wanted, this is a text
  std::string_view complaint(std::span<char> room) const noexcept;
  bool sound() const noexcept;

 private:
  explicit JsonDocument(detail::JsonState* state) noexcept : state_(state) {}

  detail::JsonState* state_;
};

}  // namespace coir
