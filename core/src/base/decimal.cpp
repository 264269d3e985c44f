#include "base/decimal.h"

#include <string.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace coir {

namespace {

// Natural is a number of up to 1,152 bits. The longest here has less than 1,100: the least double times ten to the power of 324.
class Natural {
 public:
  explicit Natural(std::uint64_t value) noexcept {
    for (; value != 0; value >>= 32) limbs_[size_++] = static_cast<std::uint32_t>(value);
  }
  Natural(const Natural& other) noexcept : size_(other.size_) { memcpy(limbs_, other.limbs_, size_ * sizeof *limbs_); }
  Natural& operator=(const Natural&) = delete;

  Natural& times(std::uint32_t factor) noexcept {
    std::uint64_t carry = 0;
    for (int i = 0; i < size_; ++i) {
      carry += std::uint64_t{limbs_[i]} * factor;
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs_[size_++] = static_cast<std::uint32_t>(carry);
    return *this;
  }
  Natural& times_two_to(int power) noexcept {
    for (; power >= 31; power -= 31) times(std::uint32_t{1} << 31);
    return times(std::uint32_t{1} << power);
  }
  Natural& times_ten_to(int power) noexcept {
    for (; power >= 9; power -= 9) times(1'000'000'000);
    for (; power > 0; --power) times(10);
    return *this;
  }
  Natural& plus(const Natural& other) noexcept {
    std::uint64_t carry = 0;
    for (int i = 0; i < other.size_ || carry != 0; ++i) {
      if (i == size_) limbs_[size_++] = 0;
      carry += std::uint64_t{limbs_[i]} + (i < other.size_ ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return *this;
  }
  // minus takes away a number that is not larger.
  void minus(const Natural& other) noexcept {
    std::int64_t borrow = 0;
    for (int i = 0; i < size_; ++i) {
      borrow += std::int64_t{limbs_[i]} - (i < other.size_ ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    while (size_ > 0 && limbs_[size_ - 1] == 0) --size_;
  }
  // compared is below, at or above 0 as this number is less than, equal to or larger than the other.
  int compared(const Natural& other) const noexcept {
    if (size_ != other.size_) return size_ - other.size_;
    for (int i = size_ - 1; i >= 0; --i) {
      if (limbs_[i] != other.limbs_[i]) return limbs_[i] < other.limbs_[i] ? -1 : 1;
    }
    return 0;
  }

 private:
  int size_ = 0;
  std::uint32_t limbs_[36];
};

// write_digits writes a number without the zeros at its end, `decimals` of whose digits are behind the point.
Decimal write_digits(std::uint64_t number, int decimals) noexcept {
  Decimal out;
  out.point = -decimals;
  for (; number % 10 == 0; number /= 10) ++out.point;
  for (std::uint64_t left = number; left != 0; left /= 10) ++out.count;
  for (int at = out.count; at > 0; number /= 10) out.digits[--at] = static_cast<char>('0' + number % 10);
  out.point += out.count;
  return out;
}

// generate is the free-format algorithm of Burger and Dybvig, "Printing Floating-Point Numbers Quickly and Accurately"
// (1996), for the number `mantissa` times two to the power of `exponent`. Every text between its two neighbours' middles
// reads back as the number, and the middles themselves do if the mantissa is even. The lower middle is half as far away
// where `closer_below`.
Decimal generate(std::uint64_t mantissa, int exponent, bool closer_below) noexcept {
  const bool even = mantissa % 2 == 0;
  // The number is rest / scale, and the lower middle `below` / scale under it.
  Natural rest(mantissa), scale(1), below(1);
  rest.times_two_to(1 + closer_below + (exponent > 0 ? exponent : 0));
  scale.times_two_to(1 + closer_below + (exponent < 0 ? -exponent : 0));
  below.times_two_to(exponent > 0 ? exponent : 0);
  const auto reaches_up = [&] {
    Natural upper(rest);
    upper.plus(below);
    if (closer_below) upper.plus(below);
    return upper.compared(scale) >= (even ? 0 : 1);
  };
  // Begin with a point that is not too high: the logarithm of two to the base of ten is between 1,233 and 1,234 / 4,096.
  Decimal out;
  const int bits = exponent + std::bit_width(mantissa) - 1;
  out.point = bits >= 0 ? bits * 1233 / 4096 + 1 : -(-bits * 1234 / 4096);
  if (out.point >= 0) {
    scale.times_ten_to(out.point);
  } else {
    rest.times_ten_to(-out.point);
    below.times_ten_to(-out.point);
  }
  while (reaches_up()) {
    scale.times(10);
    ++out.point;
  }
  for (;;) {
    rest.times(10);
    below.times(10);
    int digit = 0;
    for (; rest.compared(scale) >= 0; ++digit) rest.minus(scale);
    const bool low = rest.compared(below) < (even ? 1 : 0);
    const bool high = reaches_up();
    if (low && high) {
      // Both this digit and the next would do: the nearer, or the even one.
      const int half = Natural(rest).times(2).compared(scale);
      if (half > 0 || (half == 0 && digit % 2 != 0)) ++digit;
    } else if (high) {
      ++digit;
    }
    out.digits[out.count++] = static_cast<char>('0' + digit);
    if (low || high) return out;
  }
}

template <class Number, class Bits>
Decimal shortest(Number number) noexcept {
  constexpr int kFraction = std::numeric_limits<Number>::digits - 1;
  const Bits bits = std::bit_cast<Bits>(number);
  const Bits fraction = bits & ((Bits{1} << kFraction) - 1);
  const int biased = static_cast<int>(bits >> kFraction);
  const int least = std::numeric_limits<Number>::min_exponent - 1 - kFraction;  // of a number that is not normal
  if (biased == 0) return generate(fraction, least, false);
  return generate(fraction | Bits{1} << kFraction, least + biased - 1, fraction == 0 && biased > 1);
}

}  // namespace

Decimal decimal_of(double number) noexcept {
  // Most numbers have few digits. A quotient of two integers that a double holds is rounded once, as the text's value is;
  // below two to the power of 50, no other integer than the nearest to the product can lead back to the number.
  double power = 1;
  for (int decimals = 0; decimals <= 15 && number * power < 0x1p50; ++decimals, power *= 10) {
    const auto nearest = static_cast<std::uint64_t>(number * power + 0.5);
    if (static_cast<double>(nearest) / power == number) return write_digits(nearest, decimals);
  }
  return shortest<double, std::uint64_t>(number);
}

Decimal decimal_of(float number) noexcept {
  return shortest<float, std::uint32_t>(number);
}

}  // namespace coir
