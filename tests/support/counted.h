#pragma once

#include <atomic>
#include <utility>

namespace coir::test {

// Counted is a value that only moves and tells how many of its kind live. A value that is destroyed twice, or never,
// shows.
class Counted {
 public:
  explicit Counted(int number = 0) noexcept : number_(number) { ++alive_; }
  Counted(Counted&& other) noexcept : number_(std::exchange(other.number_, -1)) { ++alive_; }
  Counted& operator=(Counted&& other) noexcept {
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~Counted() {
    --alive_;
    if (number_ >= 0) ++ended_;
  }

  int number() const noexcept { return number_; }

  // alive counts objects, moved-from ones included; ended counts destructions of values that nobody had moved out.
  static int alive() noexcept { return alive_; }
  static int ended() noexcept { return ended_; }
  static void reset() noexcept { alive_ = ended_ = 0; }

 private:
  int number_;
  static inline std::atomic<int> alive_{0};
  static inline std::atomic<int> ended_{0};
};

}  // namespace coir::test
