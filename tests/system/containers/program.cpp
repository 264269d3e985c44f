// A program that uses one type of the C++ library, COIR_USE, and prints what it holds and what is left on the heap.
// It is linked with coir::cxx and the C library alone.

#include <coir/heap.h>
#include <stdio.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

// Each returns 4950, the sum of the numbers below 100, of which the type has held all.

[[maybe_unused]] int use_vector() {
  std::vector<int> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(i);
  int sum = 0;
  for (const int number : numbers) sum += number;
  return sum;
}

[[maybe_unused]] int use_string() {
  std::string text;
  for (int i = 0; i < 100; ++i) text.append(static_cast<std::size_t>(i), 'x');
  return static_cast<int>((text + "").find_last_of('x')) + 1;
}

[[maybe_unused]] int use_map() {
  std::map<int, int> numbers;
  for (int i = 0; i < 100; ++i) numbers[i * 37 % 100] = i;
  for (int i = 0; i < 100; i += 2) numbers.erase(i);
  int sum = 0;
  for (const auto& [key, value] : numbers) sum += 2 * key - 1;
  return sum;
}

[[maybe_unused]] int use_unordered_map() {
  std::unordered_map<int, int> numbers;
  for (int i = 0; i < 100; ++i) numbers.emplace(i, i);
  int sum = 0;
  for (int i = 0; i < 200; ++i) sum += numbers.contains(i) ? numbers.at(i) : 0;
  return sum;
}

[[maybe_unused]] int use_function() {
  int sum = 0;
  struct Wide {
    int numbers[16];
  };
  const std::function<void(int)> small = [&sum](int n) { sum += n; };
  const std::function<void(int)> large = [small, wide = Wide{}](int n) { small(n + wide.numbers[n % 16]); };
  for (int i = 0; i < 100; ++i) (i % 2 == 0 ? small : large)(i);
  return sum;
}

[[maybe_unused]] int use_unique_ptr() {
  struct Number {
    virtual ~Number() = default;
    virtual int value() const = 0;
  };
  struct Held : Number {
    explicit Held(int value) : held(value) {}
    int value() const override { return held; }
    int held;
  };
  std::unique_ptr<Number> numbers[100];
  for (int i = 0; i < 100; ++i) numbers[i] = std::make_unique<Held>(i);
  int sum = 0;
  for (const auto& number : numbers) sum += number->value();
  return sum;
}

[[maybe_unused]] int use_shared_ptr() {
  int sum = 0;
  std::weak_ptr<int> before;
  for (int i = 0; i < 100; ++i) {
    const auto number = std::make_shared<int>(i);
    if (before.lock() != nullptr) return 0;
    before = number;
    sum += *before.lock();
  }
  return sum;
}

[[maybe_unused]] int use_optional() {
  std::optional<std::string> texts[100];
  for (int i = 0; i < 100; i += 2) texts[i].emplace(99, 'x');
  int sum = 0;
  for (const auto& text : texts) sum += text ? static_cast<int>(text->size()) : 0;
  return sum;
}

[[maybe_unused]] int use_variant() {
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    std::variant<int, std::unique_ptr<int>> number = i;
    if (i % 2 == 0) number = std::make_unique<int>(i);
    sum += std::holds_alternative<int>(number) ? std::get<int>(number) : *std::get<1>(number);
  }
  return sum;
}

[[maybe_unused]] int use_every() {
  int (*const all[])() = {use_vector,     use_string,     use_map,      use_unordered_map, use_function,
                          use_unique_ptr, use_shared_ptr, use_optional, use_variant};
  for (const auto use : all) {
    if (use() != 4950) return 0;
  }
  return 4950;
}

}  // namespace

int main() {
  const int sum = COIR_USE();
  const bool used = coir::account::heap.high_water() != 0;
  coir::enter_heap_charges();
  printf("%d, heap %s, %zu left\n", sum, used ? "used" : "unused", coir::account::heap.used());
}
