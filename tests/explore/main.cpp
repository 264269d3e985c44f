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

// Noticed is a mutant, and the scenario that must notice it.
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
  const char* file = nullptr;
  const char* scenario = nullptr;
  const char* replay = nullptr;
  std::uint64_t seed = 20'260'101;
  Mutant mutant = Mutant::none;
  unsigned more = 1;
  unsigned less = 1;
};

Chooser g_decider;

// for_each_scenario calls `each` for those of a file, or of all if none is named.
template <class Each>
void for_each_scenario(const char* wanted, Each each) {
  const struct {
    const char* name;
    std::span<const Scenario> scenarios;
  } files[] = {{"budget", budget_scenarios()},   {"run_queue", run_queue_scenarios()}, {"waiter", waiter_scenarios()},
               {"reactor", reactor_scenarios()}, {"channel", channel_scenarios()},     {"select", select_scenarios()},
               {"locks", lock_scenarios()},      {"runtime", runtime_scenarios()}};
  for (const auto& file : files) {
    if (wanted != nullptr && strcmp(file.name, wanted) != 0) continue;
    for (const Scenario& one : file.scenarios) each(one);
  }
}

double seconds() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// stay_on_one_cpu, for all explored threads run on one thread of the kernel. A page that becomes inaccessible is then the
// business of no other CPU. The kernel has put each of several processes on a CPU with room.
void stay_on_one_cpu() noexcept {
  const int cpu = sched_getcpu();
  if (cpu < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
}

struct Searched {
  unsigned runs = 0;
  bool complete = true;
};

// search tries every interleaving within the bounds, up to `most`.
Searched search(const Scenario& scenario, int preemptions, int delays, unsigned most) noexcept {
  Searched out;
  g_decider.be_exhaustive(preemptions, delays, scenario.limits.timeouts);
  for (;;) {
    if (out.runs == most) {
      out.complete = false;
      return out;
    }
    ++out.runs;
    explore_run(scenario, g_decider);
    if (!g_decider.next_run()) return out;
  }
}

void explore(const Scenario& scenario, const Options& options) noexcept {
  const Limits& limits = scenario.limits;
  const double began = seconds();
  // The first run differs from the others: one-time allocations happen in it.
  search(scenario, 0, 0, 1);
  const unsigned most = limits.interleavings * options.more / options.less;
  const unsigned samples = limits.samples * options.more / options.less;
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
  g_decider.be_random(options.seed, limits.delays != 0, limits.timeouts);
  for (unsigned i = 0; i < samples; ++i) {
    explore_run(scenario, g_decider);
    g_decider.next_run();
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
    stay_on_one_cpu();
    set_mutant(one.mutant);
    set_up();
    for_each_scenario(nullptr, [&](const Scenario& scenario) {
      if (strcmp(scenario.name, one.scenario) == 0) explore(scenario, {.more = 4});
    });
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

// try_mutants tries one of them, or all if none is named.
int try_mutants(const char* wanted) noexcept {
  int missed = 0;
  for (const Noticed& one : kNoticed) {
    if (wanted != nullptr && strcmp(wanted, kMutants[static_cast<int>(one.mutant)]) != 0) continue;
    const bool noticed = is_noticed(one);
    missed += !noticed;
    printf("%s - %s notices %s\n", noticed ? "ok" : "not ok", one.scenario, kMutants[static_cast<int>(one.mutant)]);
    fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

int usage() noexcept {
  fputs(
      "usage: explore [--scenario NAME] [--replay DECISIONS] [--seed N] [--mutant NAME] [--more N]\n"
      "               [--file NAME] [--gate]\n"
      "       explore --mutants [NAME] | --list\n"
      "\n"
      "  --scenario  only those whose name holds NAME\n"
      "  --replay    one interleaving, as a failure has printed it\n"
      "  --more      so many times as many interleavings\n"
      "  --file      those of scenarios/NAME.cpp\n"
      "  --gate      a quarter as many interleavings, unless COIR_TEST_TIER is everything; an eighth under ASan\n"
      "  --mutant    every atomic operation weaker than it is written: no_fence, weak_stores, relaxed_release, "
      "lost_wake\n"
      "  --mutants   each of these, where it has to be noticed\n",
      stderr);
  return 2;
}

}  // namespace

int run(int argc, char** argv) noexcept {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--gate") == 0) {
      const char* tier = getenv("COIR_TEST_TIER");
      if (COIR_ASAN) {
        options.less = 8;
      } else if (tier == nullptr || strcmp(tier, "everything") != 0) {
        options.less = 4;
      }
      continue;
    }
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (strcmp(argv[i], "--mutants") == 0) return try_mutants(value);
    if (strcmp(argv[i], "--list") == 0) {
      for_each_scenario(nullptr, [](const Scenario& one) { puts(one.name); });
      return 0;
    }
    if (value == nullptr) return usage();
    if (strcmp(argv[i], "--scenario") == 0) {
      options.scenario = value;
    } else if (strcmp(argv[i], "--replay") == 0) {
      options.replay = value;
    } else if (strcmp(argv[i], "--seed") == 0) {
      options.seed = strtoull(value, nullptr, 10);
    } else if (strcmp(argv[i], "--file") == 0) {
      options.file = value;
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
    ++i;
  }
  stay_on_one_cpu();
  set_mutant(options.mutant);
  set_up();
  bool found = false;
  for_each_scenario(options.file, [&](const Scenario& one) {
    if (options.scenario != nullptr && strstr(one.name, options.scenario) == nullptr) return;
    found = true;
    if (options.replay == nullptr) return explore(one, options);
    search(one, 0, 0, 1);
    if (!g_decider.replay(options.replay)) exit(usage());
    explore_run(one, g_decider);
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
