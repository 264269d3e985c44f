#include "http/metrics_text.h"

#include <coir/http/wire/response.h>
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

void MetricsText::durations(std::string_view name, const DurationHistogram& durations, const Labels& labels) noexcept {
  constexpr std::string_view kBounds[] = {"0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
                                          "0.25",   "0.5",   "1",      "2.5",   "5",    "10",    "+Inf"};
  static_assert(std::size(kBounds) == DurationHistogram::kBuckets);
  const auto begin = [&](std::string_view suffix, std::string_view bound) {
    const bool any = static_cast<bool>(labels);
    add({name, suffix, any || !bound.empty() ? "{" : ""});
    if (any) labels(*this);
    if (!bound.empty()) add({any ? ",le=\"" : "le=\"", bound, "\""});
    return any || !bound.empty() ? "}" : "";
  };
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < std::size(kBounds); ++i) {
    so_far += durations.count(i);
    sample(begin("_bucket", kBounds[i]), {}, so_far);
  }
  seconds(begin("_sum", {}), {}, durations.sum_ns());
  sample(begin("_count", {}), {}, so_far);
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
