#pragma once

#include <cstdint>
#include <optional>

// Progress is a bar on standard error, drawn anew ten times a second while a transfer goes on. If standard error is no
// terminal, there is no bar.
class Progress {
 public:
  Progress(bool wanted, std::uint64_t have, std::optional<std::uint64_t> total) noexcept;
  // The bar's line is left as it was last.
  ~Progress();

  void add(std::uint64_t bytes) noexcept;

 private:
  void draw() noexcept;

  bool shown_;
  std::uint64_t have_;
  const std::uint64_t began_with_;
  std::optional<std::uint64_t> total_;
  std::int64_t began_ns_;
  std::int64_t drawn_ns_ = 0;
};
