#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/detail/nursery_base.h>
#include <coir/error.h>

namespace coir {

// Started tells whether start found a stack and a place for a child. The caller may ask it and then answers for a child
// that did not start. Unasked, its destructor fails the nursery or group, as a child that returned the error would have
// done; in a cancelled one that is no failure.
//
//   nursery.start([&] { return fetch(url); });                             // join tells if there was no stack
//   if (auto started = nursery.start(job); !started) put_off(job, started.error());
//
// A local variable of the caller's, or a temporary; it neither outlives the nursery nor can be copied or moved.
class Started {
 public:
  // Named by start alone. `failure` has no code if the child runs.
  Started(detail::NurseryBase& nursery, Error failure) noexcept
      : unasked_(failure.code == ErrorCode{} ? nullptr : &nursery), failure_(failure) {}
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() {
    if (unasked_ != nullptr) [[unlikely]]
      unasked_->refuse(failure_);
  }

  // Each of the two asks. error is for a child that did not start: limit, no_memory, cancelled, timed_out, closed,
  // invalid, unsupported.
  explicit operator bool() const noexcept {
    unasked_ = nullptr;
    return failure_.code == ErrorCode{};
  }
  Error error() const noexcept {
    unasked_ = nullptr;
    return failure_;
  }

 private:
  mutable detail::NurseryBase* unasked_;  // who is told of the failure; null once asked
  Error failure_;
};

}  // namespace coir
