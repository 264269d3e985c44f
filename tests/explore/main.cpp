#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explorer.h"

namespace coir::explore {

namespace {

constexpr const char* kMutants[] = {"none", "no_fence", "weak_stores", "relaxed_release", "lost_wake"};

// What has to be noticed, and where.
struct Noticed {
  Mutant mutant;
  const char* scenario;
};
constexpr Noticed kNoticed[] = {
    {Mutant::no_fence, "runtime_failure_cancels_the_siblings"},
    {Mutant::no_fence, "runtime_scope_meets_wait"},
    {Mutant::weak_stores, "runtime_scope_meets_wait"},
    {Mutant::relaxed_release, "run_queue_owner_and_thief"},
    {Mutant::relaxed_release, "channel_rendezvous"},
    {Mutant::relaxed_release, "once_is_done_once"},
    {Mutant::lost_wake, "mutex_is_handed_over"},
    {Mutant::lost_wake, "reactor_no_event_is_lost"},
    {Mutant::lost_wake, "runtime_fibers_end"},
};

struct Options {
  const char* scenario = nullptr;
  const char* replay = nullptr;
  std::uint64_t seed = 20'260'101;
  Mutant mutant = Mutant::none;
  unsigned more = 1;
  int half = -1;
};

Chooser g_chooser;

template <class Each>
void for_each_scenario(Each each) {
  const std::span<const Scenario> files[] = {budget_scenarios(),  run_queue_scenarios(), waiter_scenarios(),
                                             reactor_scenarios(), channel_scenarios(),   select_scenarios(),
                                             lock_scenarios(),    runtime_scenarios()};
  for (const auto& file : files) {
    for (const Scenario& one : file) each(one);
  }
}

double seconds() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// stay_on_one_cpu, for explored threads take turns, and to wake one on another CPU takes longer. The halves keep apart.
void stay_on_one_cpu(int half) noexcept {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  int nth = half > 0 && CPU_COUNT(&usable) > 1 ? 1 : 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || nth-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

struct Searched {
  unsigned runs = 0;
  bool complete = true;
};

// search tries every interleaving within the bounds, up to `most`.
Searched search(const Scenario& scenario, int preemptions, int delays, unsigned most) noexcept {
  Searched out;
  g_chooser.be_exhaustive(preemptions, delays, scenario.limits.timeouts);
  for (;;) {
    if (out.runs == most) {
      out.complete = false;
      return out;
    }
    ++out.runs;
    explore_run(scenario, g_chooser);
    if (!g_chooser.next_run()) return out;
  }
}

void explore(const Scenario& scenario, const Options& options) noexcept {
  const Limits& limits = scenario.limits;
  const double began = seconds();
  // The first run differs from the others: one-time allocations happen in it.
  search(scenario, 0, 0, 1);
  const unsigned most = limits.interleavings * options.more;
  const unsigned samples = limits.samples * options.more;
  // Few preemptions first: the interleaving that is shown is then the simplest.
  int bound = -1;
  unsigned runs = 0;
  for (int preemptions = 0; preemptions <= limits.preemptions; ++preemptions) {
    const Searched searched = search(scenario, preemptions, 0, most);
    runs += searched.runs;
    if (!searched.complete) break;
    bound = preemptions;
  }
  unsigned late_runs = 0;
  bool late_complete = false;
  if (limits.delays != 0) {
    const Searched searched =
        search(scenario, limits.preemptions > 0 ? limits.preemptions - 1 : 0, limits.delays, most);
    late_runs = searched.runs;
    late_complete = searched.complete;
  }
  g_chooser.be_random(options.seed, limits.delays != 0, limits.timeouts);
  for (unsigned i = 0; i < samples; ++i) {
    explore_run(scenario, g_chooser);
    g_chooser.next_run();
  }
  printf("ok - %s # %u interleavings, all with %d preemptions; %u with stores delayed%s; %u by chance; %.1f s\n",
         scenario.name, runs, bound, late_runs, late_complete ? ", all" : "", samples, seconds() - began);
  fflush(stdout);
}

// is_noticed runs one scenario with a mutant, in a process of its own, silently. It looks at four times as many
// interleavings, as long as none fails: where in their order the first stands changes with the steps of the core.
bool is_noticed(const Noticed& one) noexcept {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(2);
    stay_on_one_cpu(1);
    set_mutant(one.mutant);
    set_up();
    for_each_scenario([&](const Scenario& scenario) {
      if (strcmp(scenario.name, one.scenario) == 0) explore(scenario, {.more = 4});
    });
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int try_mutants() noexcept {
  int missed = 0;
  for (const Noticed& one : kNoticed) {
    const bool noticed = is_noticed(one);
    missed += !noticed;
    printf("%s - %s notices %s\n", noticed ? "ok" : "not ok", one.scenario, kMutants[static_cast<int>(one.mutant)]);
    fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

int usage() noexcept {
  fputs(
      "usage: explore [--scenario NAME] [--replay DECISIONS] [--seed N] [--mutant NAME] [--more N] [--half 0|1]\n"
      "       explore --mutants | --list\n"
      "\n"
      "  --scenario  only those whose name holds NAME\n"
      "  --replay    one interleaving, as a failure has printed it\n"
      "  --more      so many times as many interleavings\n"
      "  --half      every second scenario, for two processes at once\n"
      "  --mutant    every atomic operation weaker than it is written: no_fence, weak_stores, relaxed_release, "
      "lost_wake\n"
      "  --mutants   each of these, where it has to be noticed\n",
      stderr);
  return 2;
}

}  // namespace

int run(int argc, char** argv) noexcept {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (strcmp(argv[i], "--mutants") == 0) return try_mutants();
    if (strcmp(argv[i], "--list") == 0) {
      for_each_scenario([](const Scenario& one) { puts(one.name); });
      return 0;
    }
    if (value == nullptr) return usage();
    if (strcmp(argv[i], "--scenario") == 0) {
      options.scenario = value;
    } else if (strcmp(argv[i], "--replay") == 0) {
      options.replay = value;
    } else if (strcmp(argv[i], "--seed") == 0) {
      options.seed = strtoull(value, nullptr, 10);
    } else if (strcmp(argv[i], "--half") == 0) {
      options.half = atoi(value);
    } else if (strcmp(argv[i], "--more") == 0) {
      options.more = static_cast<unsigned>(strtoul(value, nullptr, 10));
    } else if (strcmp(argv[i], "--mutant") == 0) {
      for (std::size_t m = 0; m < std::size(kMutants); ++m) {
        if (strcmp(value, kMutants[m]) == 0) options.mutant = static_cast<Mutant>(m);
      }
      if (options.mutant == Mutant::none) return usage();
    } else {
      return usage();
    }
  }
  stay_on_one_cpu(options.half);
  set_mutant(options.mutant);
  set_up();
  bool found = false;
  int number = 0;
  for_each_scenario([&](const Scenario& one) {
    if (options.half >= 0 && number++ % 2 != options.half) return;
    if (options.scenario != nullptr && strstr(one.name, options.scenario) == nullptr) return;
    found = true;
    if (options.replay == nullptr) return explore(one, options);
    search(one, 0, 0, 1);
    if (!g_chooser.replay(options.replay)) exit(usage());
    explore_run(one, g_chooser);
    printf("ok - %s\n", one.name);
  });
  if (!found) {
    fputs("explore: there is no such scenario\n", stderr);
    return 2;
  }
  return 0;
}

}  // namespace coir::explore

int main(int argc, char** argv) {
  return coir::explore::run(argc, argv);
}
