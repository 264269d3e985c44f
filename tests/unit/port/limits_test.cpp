#include <coir/port/limits.h>

#include <CppUTest/TestHarness.h>
#include <string.h>
#include <sys/sysinfo.h>

#include <initializer_list>

namespace limits_test {

using coir::port::Limits;
using coir::port::limits_for;

namespace {

constexpr std::size_t kMega = 1024 * 1024;

std::uint64_t reserved_for_stacks(const Limits& limits) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < 4; ++i) bytes += std::uint64_t{limits.stacks[i]} * ((std::size_t{8} << i) + 4) * 1024;
  return bytes;
}

}  // namespace

TEST_GROUP(Limits) {};

TEST(Limits, the_reference_board_has_what_was_measured_on_it) {
  constexpr Limits duo = limits_for(29 * kMega);
  const std::uint32_t stacks[] = {4096, 4096, 512, 128};
  for (std::size_t i = 0; i < 4; ++i) UNSIGNED_LONGS_EQUAL(stacks[i], duo.stacks[i]);
  UNSIGNED_LONGS_EQUAL(32, duo.hot_stacks);
  UNSIGNED_LONGS_EQUAL(25, duo.guard_percent);
  UNSIGNED_LONGS_EQUAL(4, duo.blocking_threads);
  UNSIGNED_LONGS_EQUAL(4 * kMega + 464 * 1024, duo.keep_free_bytes);
  UNSIGNED_LONGS_EQUAL(8192, duo.connections);
  UNSIGNED_LONGS_EQUAL(4096, duo.kernel_bytes_per_connection);
  LONGS_EQUAL(256, duo.backlog);
}

TEST(Limits, more_memory_never_allows_less) {
  Limits before = limits_for(1);
  for (std::size_t memory = kMega; memory < 2048 * kMega; memory += 3 * kMega) {
    const Limits now = limits_for(memory);
    for (std::size_t i = 0; i < 4; ++i) CHECK_TRUE(now.stacks[i] >= before.stacks[i]);
    CHECK_TRUE(now.hot_stacks >= before.hot_stacks && now.guard_percent >= before.guard_percent);
    CHECK_TRUE(now.blocking_threads >= before.blocking_threads);
    CHECK_TRUE(now.connections >= before.connections && now.backlog >= before.backlog);
    before = now;
  }
}

TEST(Limits, no_machine_has_too_few_for_a_daemon_or_more_than_was_tried) {
  const Limits least = limits_for(0), most = limits_for(SIZE_MAX);
  CHECK_TRUE(least.stacks[0] >= 512 && least.connections >= 256 && least.backlog >= 64 && least.hot_stacks >= 8);
  UNSIGNED_LONGS_EQUAL(Limits::kMostBlockingThreads, most.blocking_threads);
  UNSIGNED_LONGS_EQUAL(65536, most.connections);
  LONGS_EQUAL(511, most.backlog);
  UNSIGNED_LONGS_EQUAL(0, most.keep_free_bytes);
}

TEST(Limits, stacks_fit_into_the_addresses_of_a_32_bit_process) {
  for (const std::size_t memory : {34 * kMega, 128 * kMega, 1024 * kMega, SIZE_MAX}) {
    CHECK_TRUE(reserved_for_stacks(limits_for(memory, 32)) < 1024 * kMega);
  }
  UNSIGNED_LONGS_EQUAL(limits_for(64 * kMega, 64).stacks[0], limits_for(64 * kMega, 32).stacks[0]);
}

TEST(Limits, a_program_has_those_of_the_memory_that_it_sees_and_never_more_than_its_board) {
  struct sysinfo info;
  CHECK_EQUAL(0, sysinfo(&info));
  const Limits here = coir::port::limits();
  CHECK_TRUE(here.memory_bytes > 0 && here.memory_bytes <= std::uint64_t{info.totalram} * info.mem_unit);
  UNSIGNED_LONGS_EQUAL(limits_for(here.memory_bytes).connections, here.connections);
  CHECK_TRUE(strlen(coir::port::board_name()) > 0);
}

}  // namespace limits_test
