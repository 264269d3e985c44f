#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The means by which every bench program measures. C library only, so that it builds with and without a C++ runtime library.
namespace bench {

// cpu_ns reads the processor time this process has used, all threads together. The timed loops never block, so on a
// quiet machine this is the wall time, and on a busy one it leaves out the time that was given to others.
inline std::int64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// ns_per runs `body` once to warm up and once against the clock, and returns nanoseconds per one of `count`.
template <class Body>
double ns_per(std::int64_t count, Body body) {
  body();
  const std::int64_t start = cpu_ns();
  body();
  return static_cast<double>(cpu_ns() - start) / static_cast<double>(count);
}

// wall_ns reads the time.
inline std::int64_t wall_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// compute keeps the processor busy for a while. kSettleNs is long enough for another to fall asleep.
inline constexpr std::int64_t kSettleNs = 300'000;
inline void compute(std::int64_t ns) {
  for (const std::int64_t until = wall_ns() + ns; wall_ns() < until;) {
  }
}

// Delays gathers times of which the median is wanted.
class Delays {
 public:
  explicit Delays(long most) : ns_(static_cast<std::int64_t*>(std::calloc(static_cast<std::size_t>(most), 8))) {
    if (ns_ == nullptr) std::abort();
  }
  ~Delays() { std::free(ns_); }
  Delays(const Delays&) = delete;
  Delays& operator=(const Delays&) = delete;
  void add(std::int64_t ns) { ns_[count_++] = ns; }
  double median_us() {
    const auto less = [](const void* a, const void* b) {
      const auto left = *static_cast<const std::int64_t*>(a), right = *static_cast<const std::int64_t*>(b);
      return left < right ? -1 : left > right;
    };
    std::qsort(ns_, count_, sizeof *ns_, +less);
    return count_ == 0 ? 0 : static_cast<double>(ns_[count_ / 2]) / 1e3;
  }

 private:
  std::int64_t* ns_;
  std::size_t count_ = 0;
};

// proc_kb returns the number behind `key` ("VmPTE:") in a file of /proc/self, in kB; -1 when it is not there.
inline long proc_kb(const char* path, const char* key) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return -1;
  char line[256];
  long kb = -1;
  while (kb < 0 && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) kb = std::strtol(line + std::strlen(key), nullptr, 10);
  }
  std::fclose(file);
  return kb;
}

// Memory is what the kernel holds resident for this process, and what it spends on page tables for it.
struct Memory {
  long resident_kb;
  long page_tables_kb;

  // now prefers smaps_rollup: the counter behind VmRSS is summed up lazily per processor and can be off by 64 pages.
  static Memory now() {
    long resident = proc_kb("/proc/self/smaps_rollup", "Rss:");
    if (resident < 0) resident = proc_kb("/proc/self/status", "VmRSS:");
    return {resident, proc_kb("/proc/self/status", "VmPTE:")};
  }
};

inline void print(const char* name, double value, const char* unit) {
  std::printf("%s: %.2f %s\n", name, value, unit);
}
inline void print(const char* name, long value, const char* unit) {
  std::printf("%s: %ld %s\n", name, value, unit);
}

// print_growth prints what each of `count` parked fibers added between two readings.
inline void print_growth(Memory before, Memory after, long count) {
  const auto bytes_each = [=](long kb) { return static_cast<double>(kb) * 1024 / static_cast<double>(count); };
  print("suspended_bytes", bytes_each(after.resident_kb - before.resident_kb), "bytes");
  print("suspended_pte_bytes", bytes_each(after.page_tables_kb - before.page_tables_kb), "bytes");
}

}  // namespace bench
