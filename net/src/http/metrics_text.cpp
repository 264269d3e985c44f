#include "http/metrics_text.h"

#include <coir/http/response.h>
#include <string.h>

namespace coir::http {
namespace {

constexpr std::size_t kNanosDigits = 9;

// write_seconds writes nanoseconds as seconds with nine decimals.
char* write_seconds(char* out, std::uint64_t ns) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  out = write_decimal(out, ns / kSecond);
  *out = '.';
  std::uint64_t rest = ns % kSecond;
  for (std::size_t at = kNanosDigits; at > 0; --at, rest /= 10) out[at] = static_cast<char>('0' + rest % 10);
  return out + 1 + kNanosDigits;
}

}  // namespace

void MetricsText::about(Kind kind, std::string_view name, std::string_view help) noexcept {
  constexpr std::string_view kKinds[] = {" counter\n", " gauge\n", " histogram\n"};
  add({"# HELP ", name, " ", help, "\n# TYPE ", name, kKinds[static_cast<int>(kind)]});
}

void MetricsText::sample(std::string_view name, std::string_view labels, std::uint64_t value) noexcept {
  char digits[20];
  add({name, labels, " ", std::string_view(digits, write_decimal(digits, value)), "\n"});
}

void MetricsText::seconds(std::string_view name, std::string_view labels, std::uint64_t ns) noexcept {
  char digits[20 + 1 + kNanosDigits];
  add({name, labels, " ", std::string_view(digits, write_seconds(digits, ns)), "\n"});
}

void MetricsText::one(Kind kind, std::string_view name, std::string_view help, std::uint64_t value) noexcept {
  about(kind, name, help);
  sample(name, {}, value);
}

void MetricsText::state(std::string_view name, std::string_view help, std::string_view label,
                        std::string_view word) noexcept {
  about(Kind::gauge, name, help);
  add({name, "{", label, "=\"", word, "\"} 1\n"});
}

void MetricsText::end() noexcept {
  static_cast<void>(exchange_.write({memory_.data(), used_}));
  used_ = 0;
}

void MetricsText::add(std::initializer_list<std::string_view> parts) noexcept {
  std::size_t size = 0;
  for (std::string_view part : parts) size += part.size();
  if (size > memory_.size()) return;
  if (size > memory_.size() - used_) end();
  for (std::string_view part : parts) {
    if (part.empty()) continue;
    memcpy(memory_.data() + used_, part.data(), part.size());
    used_ += part.size();
  }
}

}  // namespace coir::http
