#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include <cstddef>
#include <cstdint>

namespace coir::port {

// FilterProgram is a filter of system calls that is written front to back; each test skips the answer behind it, so that no
// jump is long.
template <std::size_t Capacity>
class FilterProgram {
 public:
  void load(std::size_t offset) noexcept { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0); }
  // load_argument loads the low word of an argument, on machines that are all little-endian.
  void load_argument(std::size_t which) noexcept { load(offsetof(seccomp_data, args) + which * sizeof(std::uint64_t)); }
  // The next `count` instructions are skipped unless the loaded word passes.
  void skip_unless_equal(std::uint32_t value, std::uint8_t count) noexcept {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
  }
  void skip_if_equal(std::uint32_t value, std::uint8_t count) noexcept {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0);
  }
  void skip_unless_any(std::uint32_t bits, std::uint8_t count) noexcept {
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, count);
  }
  void skip_unless_above(std::uint32_t value, std::uint8_t count) noexcept {
    add(BPF_JMP | BPF_JGT | BPF_K, value, 0, count);
  }
  void skip_if_at_least(std::uint32_t value, std::uint8_t count) noexcept {
    add(BPF_JMP | BPF_JGE | BPF_K, value, count, 0);
  }
  void allow() noexcept { answer(SECCOMP_RET_ALLOW); }
  void refuse(int error) noexcept { answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)); }
  void trap() noexcept { answer(SECCOMP_RET_TRAP); }
  template <std::size_t N>
  void refuse_each(const int (&calls)[N]) noexcept {
    for (const int call : calls) {
      skip_unless_equal(static_cast<std::uint32_t>(call), 1);
      refuse(EPERM);
    }
  }

  sock_fprog get() noexcept { return {.len = count_, .filter = code_}; }

 private:
  void answer(std::uint32_t what) noexcept { add(BPF_RET | BPF_K, what, 0, 0); }
  void add(int code, std::uint32_t k, std::uint8_t if_true, std::uint8_t if_false) noexcept {
    code_[count_++] = {.code = static_cast<std::uint16_t>(code), .jt = if_true, .jf = if_false, .k = k};
  }

  sock_filter code_[Capacity];
  std::uint16_t count_ = 0;
};

}  // namespace coir::port
