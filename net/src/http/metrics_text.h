#pragma once

#include <coir/callable.h>
#include <coir/http/detail/duration_histogram.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace coir::http {

// MetricsText gathers lines of the text format of Prometheus in the exchange's scratch memory and sends them in chunks.
class MetricsText {
 public:
  enum class Kind : unsigned char { counter, gauge, histogram };

  explicit MetricsText(Exchange& exchange) noexcept : exchange_(exchange), memory_(exchange.scratch()) {}

  // about opens a family of samples; its name has to end in _total for a counter.
  void about(Kind kind, std::string_view name, std::string_view help) noexcept;
  // sample adds one line; `labels` is empty or stands in braces.
  void sample(std::string_view name, std::string_view labels, std::uint64_t value) noexcept;
  // seconds adds one line whose value is given in nanoseconds.
  void seconds(std::string_view name, std::string_view labels, std::uint64_t ns) noexcept;
  // durations adds the samples of a histogram: its buckets, each with those before it, the sum and the count. `labels`
  // adds what stands in braces in front of their own, without a comma behind it.
  using Labels = Callable<void(MetricsText& text)>;
  void durations(std::string_view name, const DurationHistogram& durations, const Labels& labels) noexcept;
  // one is a family of a single sample without labels.
  void one(Kind kind, std::string_view name, std::string_view help, std::uint64_t value) noexcept;
  // state says which of several words holds, as a label of a sample that is 1.
  void state(std::string_view name, std::string_view help, std::string_view label, std::string_view word) noexcept;
  // add adds a part of a line as it stands.
  void add(std::initializer_list<std::string_view> parts) noexcept;
  void end() noexcept;

 private:
  Exchange& exchange_;
  std::span<char> memory_;
  std::size_t used_ = 0;
};

}  // namespace coir::http
