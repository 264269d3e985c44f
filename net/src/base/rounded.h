#pragma once

namespace coir {

// rounded is the least multiple of `unit` that is not less than `bytes`.
template <class Number>
constexpr Number rounded(Number bytes, Number unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace coir
