// JsonView of coir/json.h.
#include <coir/json.h>
#include <string.h>

#include <algorithm>

#include "json/state.h"

namespace coir {

using detail::JsonComplaint;
using detail::of;
using detail::raw;

namespace {

// whole_double is the whole number that a double holds exactly, as 5.0 does; nullopt for others and from 2^53 on, where
// neighbours are rounded to the same double.
std::optional<std::int64_t> whole_double(double value) noexcept {
  constexpr double kMost = 9007199254740992.0;
  if (!(value > -kMost && value < kMost)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) != value) return std::nullopt;
  return whole;
}

std::uint64_t word_at(const char* bytes) noexcept {
  std::uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

// same compares two names of one length. The C library's memcmp goes byte by byte, and names of 40 bytes are usual.
bool same(const char* a, const char* b, std::size_t size) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (size < kWord) return std::equal(a, a + size, b);
  for (std::size_t at = 0; at + kWord < size; at += kWord) {
    if (word_at(a + at) != word_at(b + at)) return false;
  }
  return word_at(a + size - kWord) == word_at(b + size - kWord);
}

// member_named returns the first member of that name, or null: of what is no object, too.
yyjson_val* member_named(yyjson_val* object, std::string_view name) noexcept {
  if (!yyjson_is_obj(object)) return nullptr;
  yyjson_val* key = unsafe_yyjson_get_first(object);
  for (std::size_t left = unsafe_yyjson_get_len(object); left != 0; --left) {
    if (unsafe_yyjson_get_len(key) == name.size() && same(unsafe_yyjson_get_str(key), name.data(), name.size()))
      return key + 1;
    key = unsafe_yyjson_get_next(key + 1);
  }
  return nullptr;
}

}  // namespace

std::unexpected<Error> JsonView::complain(const char* wanted, const char* flaw) const noexcept {
  JsonComplaint& kept = state_->complaint;
  if (!kept.any()) {
    kept.wanted = wanted;
    kept.flaw = flaw;
    kept.value = value();
    kept.holder = is_missing() ? value_ : nullptr;
    kept.is_named = name_ != nullptr;
    kept.index = place_;
    const std::size_t bytes = kept.is_named ? std::min(place_, JsonComplaint::kNameBytes) : 0;
    kept.name_bytes = static_cast<std::uint8_t>(bytes);
    if (bytes != 0) memcpy(kept.name, name_, bytes);
  }
  return std::unexpected(Error{is_missing() ? ErrorCode::not_found : ErrorCode::invalid});
}

std::unexpected<Error> JsonView::complain_range(std::int64_t least, std::uint64_t most) const noexcept {
  JsonComplaint& kept = state_->complaint;
  if (!kept.any()) {
    kept.has_range = true;
    kept.least = least;
    kept.most = most;
  }
  return complain("a whole number");
}

JsonView JsonView::missing(const char* name, std::size_t place) const noexcept {
  // A member of a missing value is reported as missing with it.
  if (is_missing()) return *this;
  JsonView view(*this);
  view.name_ = name;
  view.place_ = place;
  return view;
}

std::optional<JsonKind> JsonView::kind() const noexcept {
  if (is_missing()) return std::nullopt;
  switch (yyjson_get_type(raw(value()))) {
    case YYJSON_TYPE_BOOL:
      return JsonKind::boolean;
    case YYJSON_TYPE_NUM:
      return JsonKind::number;
    case YYJSON_TYPE_STR:
      return JsonKind::text;
    case YYJSON_TYPE_ARR:
      return JsonKind::array;
    case YYJSON_TYPE_OBJ:
      return JsonKind::object;
    default:
      return JsonKind::null;
  }
}

std::size_t JsonView::size() const noexcept {
  return yyjson_is_ctn(raw(value())) ? yyjson_get_len(raw(value())) : 0;
}

JsonView JsonView::operator[](std::string_view name) const noexcept {
  if (yyjson_val* const found = member_named(raw(value()), name)) return {state_, of(found)};
  return missing(name.data() != nullptr ? name.data() : "", name.size());
}

JsonView JsonView::operator[](std::size_t index) const noexcept {
  if (yyjson_val* const found = yyjson_arr_get(raw(value()), index)) return {state_, of(found)};
  return missing(nullptr, std::min(index, kPresent - 1));
}

std::optional<JsonView> JsonView::find(std::string_view name) const noexcept {
  yyjson_val* const found = member_named(raw(value()), name);
  if (found == nullptr || yyjson_is_null(found)) return std::nullopt;
  return JsonView(state_, of(found));
}

std::expected<std::string_view, Error> JsonView::text(std::size_t most) const noexcept {
  if (!yyjson_is_str(raw(value()))) return complain("a text");
  const std::size_t size = yyjson_get_len(raw(value()));
  if (size > most) {
    if (!state_->complaint.any()) state_->complaint.most = most;
    return complain("a text", "too long");
  }
  return std::string_view(yyjson_get_str(raw(value())), size);
}

std::expected<bool, Error> JsonView::boolean() const noexcept {
  if (!yyjson_is_bool(raw(value()))) return complain("true or false");
  return yyjson_get_bool(raw(value()));
}

std::expected<double, Error> JsonView::number() const noexcept {
  if (!yyjson_is_num(raw(value()))) return complain("a number");
  return yyjson_get_num(raw(value()));
}

std::expected<std::int64_t, Error> JsonView::signed_integer(std::int64_t least, std::int64_t most) const noexcept {
  yyjson_val* const given = raw(value());
  std::optional<std::int64_t> found;
  if (yyjson_is_sint(given)) found = yyjson_get_sint(given);
  if (yyjson_is_uint(given) && yyjson_get_uint(given) <= INT64_MAX)
    found = static_cast<std::int64_t>(yyjson_get_uint(given));
  if (yyjson_is_real(given)) found = whole_double(yyjson_get_real(given));
  if (!found || *found < least || *found > most) return complain_range(least, static_cast<std::uint64_t>(most));
  return *found;
}

std::expected<std::uint64_t, Error> JsonView::unsigned_integer(std::uint64_t least, std::uint64_t most) const noexcept {
  yyjson_val* const given = raw(value());
  std::optional<std::uint64_t> found;
  if (yyjson_is_uint(given)) found = yyjson_get_uint(given);
  if (yyjson_is_real(given)) {
    if (const auto whole = whole_double(yyjson_get_real(given)); whole && *whole >= 0)
      found = static_cast<std::uint64_t>(*whole);
  }
  if (!found || *found < least || *found > most) return complain_range(static_cast<std::int64_t>(least), most);
  return *found;
}

std::expected<void, Error> JsonView::only(std::initializer_list<std::string_view> names) const noexcept {
  if (!yyjson_is_obj(raw(value()))) return complain("an object");
  for (const auto [name, value] : members()) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    // yyjson finds the first of that name.
    const bool repeated = known && (*this)[name].value() != value.value();
    if (known && !repeated) continue;
    return value.complain("nothing", repeated ? "stands here twice" : "not known here");
  }
  return {};
}

JsonView::Elements JsonView::elements() const noexcept {
  const bool fits = yyjson_is_arr(raw(value()));
  if (!fits) static_cast<void>(complain("an array"));
  return {state_, fits ? value() : nullptr};
}

JsonView::Members JsonView::members() const noexcept {
  const bool fits = yyjson_is_obj(raw(value()));
  if (!fits) static_cast<void>(complain("an object"));
  return {state_, fits ? value() : nullptr};
}

JsonView::Elements::Iterator JsonView::Elements::begin() const noexcept {
  Iterator first;
  first.state_ = state_;
  first.value_ = of(yyjson_arr_get_first(raw(array_)));
  first.left_ = yyjson_arr_size(raw(array_));
  return first;
}

JsonView::Elements::Iterator JsonView::Elements::end() const noexcept {
  Iterator last;
  last.state_ = state_;
  last.value_ = nullptr;
  last.left_ = 0;
  return last;
}

JsonView::Elements::Iterator& JsonView::Elements::Iterator::operator++() noexcept {
  if (--left_ != 0) value_ = of(unsafe_yyjson_get_next(raw(value_)));
  return *this;
}

JsonView::Members::Iterator JsonView::Members::begin() const noexcept {
  Iterator first;
  first.state_ = state_;
  first.left_ = yyjson_obj_size(raw(object_));
  first.name_ = first.left_ != 0 ? of(unsafe_yyjson_get_first(raw(object_))) : nullptr;
  return first;
}

JsonView::Members::Iterator JsonView::Members::end() const noexcept {
  Iterator last;
  last.state_ = state_;
  last.name_ = nullptr;
  last.left_ = 0;
  return last;
}

JsonView::Members::Iterator& JsonView::Members::Iterator::operator++() noexcept {
  if (--left_ != 0) name_ = of(unsafe_yyjson_get_next(raw(name_) + 1));
  return *this;
}

JsonView::Members::Member JsonView::Members::Iterator::operator*() const noexcept {
  yyjson_val* const name = raw(name_);
  return {{yyjson_get_str(name), yyjson_get_len(name)}, JsonView(state_, of(name + 1))};
}

}  // namespace coir
