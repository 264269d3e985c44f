#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// FieldParameter is one "name=value" or 'name="value"'.
struct FieldParameter {
  std::string_view name;
  std::string_view raw;  // between the quotes, if there are some
  bool quoted;

  // value takes the backslashes before quotes and backslashes away: into `out`, which may be where `raw` lies, if there
  // are any. Other backslashes are themselves, as browsers send them. Absent: it does not fit.
  std::optional<std::string_view> value(std::span<char> out) const noexcept;
};

// FieldParameters walks through the parameters behind a media type or a disposition, "; a=b; c=\"d\"" (RFC
// 9110, 5.6.6).
class FieldParameters {
 public:
  explicit FieldParameters(std::string_view text) noexcept : rest_(text) {}

  // next returns the next parameter, absent after the last and before what is malformed.
  std::optional<FieldParameter> next() noexcept;

  // whole tells, after the last, whether all of the text was in order.
  bool whole() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace coir::http
