#include <coir/port/cpu.h>
#include <coir/port/memory.h>
#include <coir/port/seccomp.h>

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>

#include "filter.h"
#include "service_calls.h"

namespace coir::port {
namespace {

struct Range {
  std::uint32_t first = 0, last = 0;
};

// Kept numbers, as ranges in their order.
struct Ranges {
  Range all[std::size(kKept)];
  std::size_t count = 0;
};

consteval Ranges ranges() {
  int numbers[std::size(kKept)];
  std::ranges::copy(kKept, numbers);
  std::ranges::sort(numbers);
  Ranges made;
  for (const int number : numbers) {
    const auto call = static_cast<std::uint32_t>(number);
    if (made.count != 0 && made.all[made.count - 1].last + 1 >= call) {
      made.all[made.count - 1].last = call;
    } else {
      made.all[made.count++] = {call, call};
    }
  }
  return made;
}

constexpr Ranges kRanges = ranges();

// A range takes three instructions. Halving the ranges takes one more for each range but one.
constexpr std::size_t kPerRange = 4;
using Program = FilterProgram<56 + kPerRange * kRanges.count>;
static_assert(kPerRange * (kRanges.count / 2 + 1) < 256, "a jump over half of them fits into a byte");

// write_search looks for the loaded number, which is not below those ranges, in as many steps as halving takes.
void write_search(Program& program, std::size_t from, std::size_t to) noexcept {
  if (to - from == 1) {
    program.skip_unless_above(kRanges.all[from].last, 1);
    program.trap();
    program.allow();
    return;
  }
  const std::size_t middle = from + (to - from) / 2;
  program.skip_if_at_least(kRanges.all[middle].first, static_cast<std::uint8_t>(kPerRange * (middle - from) - 1));
  write_search(program, from, middle);
  write_search(program, middle, to);
}

// trap_if_any: the call is allowed unless an argument has one of the bits.
void trap_if_any(Program& program, int call, std::size_t argument, std::uint32_t bits) noexcept {
  program.skip_unless_equal(static_cast<std::uint32_t>(call), 4);
  program.load_argument(argument);
  program.skip_unless_any(bits, 1);
  program.trap();
  program.allow();
}

void write_filter(Program& program) noexcept {
  program.load(offsetof(seccomp_data, arch));
  program.skip_if_equal(kAuditArchitecture, 1);  // another CPU's calls have other numbers
  program.trap();
  program.load(offsetof(seccomp_data, nr));
  // Among them are those of another ABI, and the number -1 by which a tracer makes no call.
  program.skip_unless_above(kLastKnownCall, 1);
  program.refuse(ENOSYS);
  // Its flags lie in memory, where no filter looks: it is as if the kernel had none, and libc takes clone.
  program.skip_unless_equal(SYS_clone3, 1);
  program.refuse(ENOSYS);
#if defined(SYS_mmap2)
  trap_if_any(program, SYS_mmap2, 2, PROT_EXEC);
#else
  trap_if_any(program, SYS_mmap, 2, PROT_EXEC);
#endif
  trap_if_any(program, SYS_mprotect, 2, PROT_EXEC);
  program.skip_unless_equal(SYS_clone, 4);
  program.load_argument(0);
  program.skip_unless_any(CLONE_THREAD, 1);
  program.allow();
  program.trap();
  // A signal to itself, as a broker's command to end is.
  for (const int call : {SYS_kill, SYS_tgkill}) {
    program.skip_unless_equal(static_cast<std::uint32_t>(call), 4);
    program.load_argument(0);
    program.skip_unless_equal(static_cast<std::uint32_t>(getpid()), 1);
    program.allow();
    program.trap();
  }
  program.skip_unless_equal(SYS_socket, 7);
  program.load_argument(0);
  program.skip_if_equal(AF_UNIX, 4);
  program.skip_if_equal(AF_INET, 3);
  program.skip_if_equal(AF_INET6, 2);
  program.skip_if_equal(AF_NETLINK, 1);
  program.refuse(EAFNOSUPPORT);
  program.allow();
  program.skip_if_at_least(kRanges.all[0].first, 1);
  program.trap();
  write_search(program, 0, kRanges.count);
}

}  // namespace

int keep_service_calls() noexcept {
  // An unprivileged thread gives up new privileges before it may filter.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  void* const place = reserve(sizeof(Program));  // too large for a small stack
  if (place == nullptr) return ENOMEM;
  auto* const program = new (place) Program;
  write_filter(*program);
  const sock_fprog filter = program->get();
  // Kernels before 5.16 would slow every memory access of a filtered process down, for the sake of programs that run code
  // of others.
  constexpr unsigned kFlags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &filter);
  const int error = result == 0 ? 0 : result < 0 ? errno : EBUSY;  // more than 0: a thread that has a filter of its own
  release(place, sizeof(Program));
  return error;
}

const char* system_call_name(int number) noexcept {
  const char* name = kNames;
  for (const std::uint16_t known : kNumbers) {
    if (known == number) return name;
    while (*name++ != '\0') {
    }
  }
  return nullptr;
}

}  // namespace coir::port
