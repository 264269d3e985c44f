#pragma once

#include <coir/life_watch.h>

#include <cstdint>

#include "schedule/scheduler.h"

namespace coir {

// KeptWorkers finds the fibers that keep their workers, by looking from time to time whether each worker has switched.
// It names each such fiber, with its backtrace on standard error, once until its worker switches: as computing, if its
// thread had the processor, or as blocked in a system call, if the thread sleeps. One thread.
//
// The backtrace is taken by a signal (see sample.h): a system call that is not restarted after a signal is cut short.
class KeptWorkers {
 public:
  // Starved says whether a fiber counts whose thread is runnable and does not get the processor.
  enum class Starved : bool { is_spared, counts };

  // look looks at all workers. True: a fiber keeps one for longer than the threshold.
  bool look(const Scheduler& scheduler, std::int64_t threshold_ns, Starved starved,
            const LifeWatch::Tell& tell = {}) noexcept;

  // forget starts anew, for another run.
  void forget() noexcept;

 private:
  struct Episode {
    std::uint64_t switches;
    std::int64_t since_ns, cpu_ns;
    bool told;
  };

  static bool look_at(const Worker& worker, Episode& episode, std::int64_t threshold_ns, Starved starved,
                      const LifeWatch::Tell& tell) noexcept;

  Episode episodes_[Scheduler::kMaxWorkers] = {};
};

}  // namespace coir
