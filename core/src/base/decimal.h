#pragma once

namespace coir {

// Decimal is the shortest decimal text that reads back as the same number, and of these the nearest: 0.d1d2... times ten
// to the power of `point`.
struct Decimal {
  char digits[17];
  int count = 0;
  int point = 0;
};

// decimal_of a finite number over 0. Exact, without a table; at most 700 bytes of stack. Cost: some 100 ns for a number
// of up to 15 digits, some microseconds for others.
Decimal decimal_of(double number) noexcept;
Decimal decimal_of(float number) noexcept;

}  // namespace coir
