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

}  // namespace

std::unexpected<Error> JsonView::complain(const char* wanted, const char* flaw) const noexcept {
  JsonComplaint& kept = state_->complaint;
  const bool missing = value_ == nullptr;
  if (!kept.any()) {
    kept.wanted = wanted;
    kept.flaw = flaw;
    kept.value = value_;
    kept.holder = holder_;
    kept.is_named = index_ == kNamed;
    kept.index = index_;
    const std::size_t bytes = std::min(name_.size(), JsonComplaint::kNameBytes);
    kept.name_bytes = static_cast<std::uint8_t>(bytes);
    if (bytes != 0) memcpy(kept.name, name_.data(), bytes);
  }
  return std::unexpected(Error{missing ? ErrorCode::not_found : ErrorCode::invalid});
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

JsonView JsonView::missing(std::string_view name, std::size_t index) const noexcept {
  // A member of a missing value is reported as missing with it.
  if (value_ == nullptr) return *this;
  JsonView view(state_, nullptr);
  view.holder_ = value_;
  view.name_ = name;
  view.index_ = index;
  return view;
}

std::optional<JsonKind> JsonView::kind() const noexcept {
  if (value_ == nullptr) return std::nullopt;
  switch (yyjson_get_type(raw(value_))) {
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
  return yyjson_is_ctn(raw(value_)) ? yyjson_get_len(raw(value_)) : 0;
}

JsonView JsonView::operator[](std::string_view name) const noexcept {
  if (yyjson_val* const found = yyjson_obj_getn(raw(value_), name.data(), name.size())) return {state_, of(found)};
  return missing(name, kNamed);
}

JsonView JsonView::operator[](std::size_t index) const noexcept {
  if (yyjson_val* const found = yyjson_arr_get(raw(value_), index)) return {state_, of(found)};
  return missing({}, index);
}

std::optional<JsonView> JsonView::find(std::string_view name) const noexcept {
  yyjson_val* const found = yyjson_obj_getn(raw(value_), name.data(), name.size());
  if (found == nullptr || yyjson_is_null(found)) return std::nullopt;
  return JsonView(state_, of(found));
}

std::expected<std::string_view, Error> JsonView::text(std::size_t most) const noexcept {
  if (!yyjson_is_str(raw(value_))) return complain("a text");
  const std::size_t size = yyjson_get_len(raw(value_));
  if (size > most) {
    if (!state_->complaint.any()) state_->complaint.most = most;
    return complain("a text", "too long");
  }
  return std::string_view(yyjson_get_str(raw(value_)), size);
}

std::expected<bool, Error> JsonView::boolean() const noexcept {
  if (!yyjson_is_bool(raw(value_))) return complain("true or false");
  return yyjson_get_bool(raw(value_));
}

std::expected<double, Error> JsonView::number() const noexcept {
  if (!yyjson_is_num(raw(value_))) return complain("a number");
  return yyjson_get_num(raw(value_));
}

std::expected<std::int64_t, Error> JsonView::signed_integer(std::int64_t least, std::int64_t most) const noexcept {
  yyjson_val* const value = raw(value_);
  std::optional<std::int64_t> found;
  if (yyjson_is_sint(value)) found = yyjson_get_sint(value);
  if (yyjson_is_uint(value) && yyjson_get_uint(value) <= INT64_MAX)
    found = static_cast<std::int64_t>(yyjson_get_uint(value));
  if (yyjson_is_real(value)) found = whole_double(yyjson_get_real(value));
  if (!found || *found < least || *found > most) return complain_range(least, static_cast<std::uint64_t>(most));
  return *found;
}

std::expected<std::uint64_t, Error> JsonView::unsigned_integer(std::uint64_t least, std::uint64_t most) const noexcept {
  yyjson_val* const value = raw(value_);
  std::optional<std::uint64_t> found;
  if (yyjson_is_uint(value)) found = yyjson_get_uint(value);
  if (yyjson_is_real(value)) {
    if (const auto whole = whole_double(yyjson_get_real(value)); whole && *whole >= 0)
      found = static_cast<std::uint64_t>(*whole);
  }
  if (!found || *found < least || *found > most) return complain_range(static_cast<std::int64_t>(least), most);
  return *found;
}

std::expected<void, Error> JsonView::only(std::initializer_list<std::string_view> names) const noexcept {
  if (!yyjson_is_obj(raw(value_))) return complain("an object");
  for (const auto [name, value] : members()) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    // yyjson finds the first of that name.
    const bool repeated = known && (*this)[name].value_ != value.value_;
    if (known && !repeated) continue;
    return value.complain("nothing", repeated ? "stands here twice" : "not known here");
  }
  return {};
}

JsonView::Elements JsonView::elements() const noexcept {
  const bool fits = yyjson_is_arr(raw(value_));
  if (!fits) static_cast<void>(complain("an array"));
  return {state_, fits ? value_ : nullptr};
}

JsonView::Members JsonView::members() const noexcept {
  const bool fits = yyjson_is_obj(raw(value_));
  if (!fits) static_cast<void>(complain("an object"));
  return {state_, fits ? value_ : nullptr};
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
