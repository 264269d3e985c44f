// The cost of what runs jobs, through the public interface; tests/bench/README.md defines the figures.
//
//   jobs_bench task|group|pool|with_timeout|every [COUNT]

#include <coir/cancel_scope.h>
#include <coir/every.h>
#include <coir/fiber.h>
#include <coir/group.h>
#include <coir/pool.h>
#include <coir/runtime.h>

#include "measure.h"

namespace {

using namespace coir;

constexpr SpawnOptions kFiber{.name = "bench", .stack = 8_KiB};

void must(bool fine) {
  if (fine) return;
  std::fputs("jobs_bench: a job failed\n", stderr);
  std::exit(1);
}

// A fiber that returns a number, and its result, one after the other.
void measure_task(long count) {
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) must(spawn(kFiber, [i] { return i; }).await() == i);
  });
  bench::print("task_ns", ns, "ns");
}

// Groups of 32 jobs that do nothing; the time of one job.
void measure_group(long count) {
  constexpr long kJobs = 32;
  const double ns = bench::ns_per(count / kJobs * kJobs, [&] {
    for (long i = 0; i < count / kJobs; ++i) {
      Group group;
      for (long job = 0; job < kJobs; ++job) group.start(kFiber, [] {});
      must(group.join().has_value());
    }
  });
  bench::print("group_ns", ns, "ns");
}

// Four fibers behind a backlog of 64; the time from submit to the job's end, with others on their way.
void measure_pool(long count) {
  const double ns = bench::ns_per(count, [&] {
    Pool<64> pool({.fibers = 4, .spawn = kFiber});
    Atomic<long> done{0};
    for (long i = 0; i < count; ++i) {
      must(pool.submit([&done] { done.fetch_add(1, std::memory_order_relaxed); }).has_value());
    }
    must(pool.close().has_value() && done.load(std::memory_order_relaxed) == count);
  });
  bench::print("pool_ns", ns, "ns");
}

// A deadline around a body that yields instead of waiting for it.
void measure_with_timeout(long count) {
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) must(with_timeout(std::chrono::seconds(30), [] { yield(); }).has_value());
  });
  bench::print("with_timeout_ns", ns, "ns");
}

// A job every millisecond: how far its last run is from where the first one and whole intervals put it. A run that is
// late once is no drift, so that the least of the last hundred counts.
void measure_every(long count) {
  constexpr std::int64_t kIntervalNs = 1'000'000;
  std::int64_t first = 0, least = INT64_MAX;
  long run = 0;
  const auto ended = every(std::chrono::nanoseconds(kIntervalNs), [&]() -> std::expected<void, Error> {
    const std::int64_t now = bench::wall_ns();
    if (run++ == 0) first = now;
    const std::int64_t late = (now - first) % kIntervalNs;
    const std::int64_t apart = late < kIntervalNs - late ? late : kIntervalNs - late;
    if (run > count - 100 && run > 1 && apart < least) least = apart;
    if (run < count) return {};
    return std::unexpected(Error(ErrorCode::end_of_stream));
  });
  must(!ended && ended.error() == ErrorCode::end_of_stream);
  bench::print("every_drift_us", static_cast<double>(least) / 1e3, "us");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr struct {
    const char* name;
    void (*measure)(long);
  } kAll[] = {{"task", measure_task},
              {"group", measure_group},
              {"pool", measure_pool},
              {"with_timeout", measure_with_timeout},
              {"every", measure_every}};
  const char* const what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[2]) : 100'000;
  for (const auto& one : kAll) {
    if (std::strcmp(what, one.name) == 0) return run(RunOptions{}, [&] { one.measure(count); });
  }
  std::fputs("usage: jobs_bench task|group|pool|with_timeout|every [COUNT]\n", stderr);
  return 2;
}
