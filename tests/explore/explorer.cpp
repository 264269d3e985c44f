#include "explorer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "explored_context.h"
#include "steps.h"

// Explored threads are contexts of which one runs at a time: whoever is about to take a step asks the chooser who is next,
// hands over if that is somebody else, and takes its step once it has been handed back. So nothing here needs to be
// atomic.

namespace coir::explore {

namespace {

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kEpochNs = 1'000'000'000;
constexpr std::uint32_t kMostSteps = 120'000;
constexpr int kVain = 3;  // a thread that has read one value from one place so often in a row waits for another's store
constexpr std::uint32_t kMostStepsInRow = 1500;
constexpr unsigned kPatience = 100;
constexpr unsigned kBuffer = 6;

struct Late {
  void* at;
  std::uint64_t bits;
  unsigned bytes;
  std::uint32_t turn;  // g_turns when it was delayed; 0: it only stays behind another
};

struct Explored {
  enum class State : std::uint8_t { unused, ready, asleep, ended };

  ExploredContext context;
  int id;
  State state;
  bool timed_out, spins, polls, quiet;
  Step kind;               // of the latest step
  std::uint32_t in_a_row;  // how many steps it has taken since another thread had its turn
  Body body;
  void* argument;
  const void* sleeps_on;
  std::int64_t due_ns;
  std::uint32_t asleep_since, last_turn;
  const void* read_at;
  std::uint64_t read_bits;
  int read_times;
  unsigned late;
  Late buffer[kBuffer];
};

Explored g_threads[Chooser::kMostThreads];
int g_used;
std::int64_t g_now_ns;
unsigned g_time_passed;
std::uint32_t g_steps;
std::uint64_t g_all_steps;
unsigned g_wakes;
std::uint32_t g_turns;     // how often the turn has passed to another thread
unsigned g_in_vain;        // how often in a row one that spins had its turn because nobody else could go on
const char kAnything = 0;  // what one that lets others go first waits for
Chooser* g_chooser;
const Scenario* g_scenario;
Report g_report;
ExploredContext g_explorer;  // what waits for the end of a run
Mutant g_mutant;
thread_local Explored* t_self = nullptr;

[[noreturn]] void fail(const char* what, const std::source_location* where = nullptr) noexcept {
  printf("%s: %s", g_scenario->name, what);
  if (where != nullptr) printf(" (%s:%u)", where->file_name(), where->line());
  puts(", by these steps:");
  g_report.print();
  for (int i = 0; i < g_used; ++i) {
    constexpr const char* kStates[] = {"unused", "can go on", "asleep", "ended"};
    printf("  thread %d: %s\n", i, kStates[static_cast<int>(g_threads[i].state)]);
  }
  printf("not ok - %s\nreplay: --scenario %s --replay ", g_scenario->name, g_scenario->name);
  g_chooser->print_decisions();
  putchar('\n');
  fflush(stdout);
  _exit(1);
}

// end_spinning is for a store of the writer's to `at`.
// A store by a thread that polls is no news for others that poll.
void end_spinning(const Explored* writer, const void* at) noexcept {
  if (!writer->polls) g_in_vain = 0;
  for (int i = 0; i < g_used; ++i) {
    Explored& one = g_threads[i];
    if (&one != writer && (one.read_at == at || (one.read_at == &kAnything && !writer->polls))) one.spins = false;
  }
}

// Nothing waits for what the ledger counts, and its highest marks stay from one run to the next.
bool is_left_out(const std::source_location& where) noexcept {
  static constexpr char kLedger[] = "/ledger.cpp";
  static const char* known = nullptr;
  static bool left_out = false;
  if (where.file_name() == known) return left_out;
  known = where.file_name();
  const std::size_t length = strlen(known);
  left_out = length >= sizeof kLedger && strcmp(known + length - (sizeof kLedger - 1), kLedger) == 0;
  return left_out;
}

// make_visible carries out the oldest late store.
void make_visible(Explored& thread) noexcept {
  const Late oldest = thread.buffer[0];
  if (oldest.turn == g_turns) g_chooser->delayed_in_vain();
  --thread.late;
  for (unsigned i = 0; i < thread.late; ++i) thread.buffer[i] = thread.buffer[i + 1];
  memcpy(oldest.at, &oldest.bits, oldest.bytes);
  g_report.became_visible(thread.id, oldest.at, oldest.bits);
  end_spinning(&thread, oldest.at);
}

void make_all_visible(Explored& thread) noexcept {
  while (thread.late != 0) make_visible(thread);
}

// hand_to gives the next thread its turn, and returns once `from` has its own.
void hand_to(Explored& next, ExploredContext& from) noexcept {
  next.last_turn = g_steps;
  ++g_turns;
  switch_to(from, next.context);
}

void wake_up(Explored& thread, bool timed_out) noexcept {
  thread.state = Explored::State::ready;
  thread.timed_out = timed_out;
  thread.sleeps_on = nullptr;
}

// end_by_time wakes a sleeper whose deadline is taken to have come.
void end_by_time(Explored& thread) noexcept {
  if (g_now_ns < thread.due_ns) g_now_ns = thread.due_ns;
  wake_up(thread, true);
}

Explored* spinner_of_longest() noexcept {
  Explored* longest = nullptr;
  for (int i = 0; i < g_used; ++i) {
    Explored& one = g_threads[i];
    if (one.state == Explored::State::ready && (longest == nullptr || one.last_turn < longest->last_turn)) {
      longest = &one;
    }
  }
  return longest;
}

Explored* first_due() noexcept {
  Explored* first = nullptr;
  for (int i = 0; i < g_used; ++i) {
    Explored& one = g_threads[i];
    if (one.state == Explored::State::asleep && one.due_ns != kNever &&
        (first == nullptr || one.due_ns < first->due_ns))
      first = &one;
  }
  return first;
}

bool can_go_on(const Explored& one) noexcept {
  return one.state == Explored::State::ready && !one.spins;
}

// who_is_next picks among the threads that can run; `self` is the running one.
Explored& who_is_next(Explored& self) noexcept {
  for (;;) {
    std::uint8_t candidates[Chooser::kMostThreads];
    std::size_t count = 0;
    if (can_go_on(self)) candidates[count++] = static_cast<std::uint8_t>(self.id);
    const bool goes_on = count == 1;
    for (int i = 0; i < g_used; ++i) {
      if (&g_threads[i] != &self && can_go_on(g_threads[i])) candidates[count++] = static_cast<std::uint8_t>(i);
    }
    if (count != 0) {
      const std::size_t free = goes_on ? 1 : count;
      if (g_chooser->timeouts()) {
        for (int i = 0; i < g_used; ++i) {
          const Explored& one = g_threads[i];
          if (one.state == Explored::State::asleep && one.due_ns != kNever)
            candidates[count++] = static_cast<std::uint8_t>(i);
        }
      }
      if (const char* const trouble = g_chooser->trouble(); trouble != nullptr) fail(trouble);
      Explored& chosen = g_threads[candidates[g_chooser->thread(candidates, count, free)]];
      if (chosen.state == Explored::State::asleep) end_by_time(chosen);
      return chosen;
    }
    // No thread can run: first late stores become visible, then a thread that spins gives up some time, then time passes.
    bool late = false;
    for (int i = 0; i < g_used; ++i) {
      late = late || g_threads[i].late != 0;
      make_all_visible(g_threads[i]);
    }
    if (late) continue;
    Explored* const spinner = spinner_of_longest();
    Explored* const due = first_due();
    if (spinner != nullptr && (due == nullptr || g_in_vain < kPatience)) {
      ++g_in_vain;
      spinner->spins = false;
      spinner->last_turn = g_steps;  // also when it continues itself: of two that spin, each gets its turn
      return *spinner;
    }
    if (due != nullptr) {
      ++g_time_passed;
      g_report.step(due->id, Step::time, nullptr, std::memory_order_relaxed, std::source_location::current());
      g_in_vain = 0;
      end_by_time(*due);
      continue;
    }
    fail("everybody sleeps for good");
  }
}

void let_others(Explored& self) noexcept {
  Explored& next = who_is_next(self);
  if (&next == &self) return;
  hand_to(next, self.context);
  self.in_a_row = 0;
}

// thread_main runs one body for each run.
void thread_main(void* given) noexcept {
  Explored& self = *static_cast<Explored*>(given);
  for (;;) {
    t_self = &self;
    self.body(self.argument);
    make_all_visible(self);
    self.state = Explored::State::ended;
    wake_one(&self);
    bool over = true;
    for (int i = 0; i < g_used; ++i) over = over && g_threads[i].state == Explored::State::ended;
    if (over) {
      switch_to(self.context, g_explorer);
    } else {
      hand_to(who_is_next(self), self.context);
    }
  }
}

int add_thread(Body body, void* argument) noexcept {
  if (g_used == Chooser::kMostThreads) fail("too many threads");
  Explored& one = g_threads[g_used];
  one.id = g_used++;
  one.state = Explored::State::ready;
  one.body = body;
  one.argument = argument;
  one.spins = one.timed_out = one.polls = false;
  one.sleeps_on = one.read_at = nullptr;
  one.read_times = 0;
  one.in_a_row = 0;
  one.late = 0;
  one.last_turn = g_steps;
  return one.id;
}

}  // namespace

void set_up() noexcept {
  g_explorer.be_this_thread();
  for (Explored& one : g_threads) one.context.make(thread_main, &one);
}

void set_mutant(Mutant mutant) noexcept {
  g_mutant = mutant;
}

void explore_run(const Scenario& scenario, Chooser& chooser) noexcept {
  g_scenario = &scenario;
  g_chooser = &chooser;
  g_used = 0;
  g_now_ns = kEpochNs;
  g_steps = g_time_passed = g_wakes = g_in_vain = g_turns = 0;
  g_report.begin();
  chooser.begin();
  add_thread([](void* body) { reinterpret_cast<void (*)()>(body)(); }, reinterpret_cast<void*>(scenario.body));
  hand_to(g_threads[0], g_explorer);
  g_all_steps += g_steps;
  for (int i = 0; i < g_used; ++i) g_threads[i].context.renew_variables();
}

std::uint64_t steps_taken() noexcept {
  return g_all_steps;
}

void before(Step kind, const void* at, std::memory_order order, const std::source_location& where) noexcept {
  Explored* const self = t_self;
  if (self == nullptr) return;
  if (++g_steps == kMostSteps) fail("it does not come to an end");
  self->quiet = is_left_out(where);
  if (self->quiet) return;
  if (kind != self->kind || at != self->read_at) self->spins = false;
  self->kind = kind;
  g_chooser->step(self->id);
  // A thread that keeps all others from running for long is at the end of a loop that waits for another thread.
  const bool for_long = ++self->in_a_row >= kMostStepsInRow;
  if (for_long) {
    self->in_a_row = 0;
    self->spins = true;
  }
  let_others(*self);
  if (for_long) self->spins = false;
  g_report.step(self->id, kind, at, order, where);
  if (g_chooser->delays()) {
    for (int i = 0; i < g_used; ++i) {
      if (g_threads[i].late != 0 && g_chooser->trickle()) make_visible(g_threads[i]);
    }
  }
  const bool is_fence =
      kind != Step::load && kind != Step::store && !(kind == Step::fence && g_mutant == Mutant::no_fence);
  if (is_fence) make_all_visible(*self);
  if (kind != Step::load && kind != Step::compare) self->read_at = nullptr;
}

void store(void* at, std::uint64_t bits, unsigned bytes, std::memory_order order) noexcept {
  Explored* const self = t_self;
  if (self != nullptr) {
    if (g_mutant == Mutant::weak_stores && order == std::memory_order_seq_cst) order = std::memory_order_release;
    if (g_mutant == Mutant::relaxed_release && order == std::memory_order_release) order = std::memory_order_relaxed;
    g_report.value(self->id, bits);
    if (order == std::memory_order_seq_cst) {
      make_all_visible(*self);
    } else if (g_chooser->delays() && !self->quiet) {
      // A releasing store stays behind what was stored before it, and each behind an earlier one to the same place. A
      // relaxed one may overtake.
      bool behind = order != std::memory_order_relaxed && self->late != 0;
      for (unsigned i = 0; i < self->late; ++i) behind = behind || self->buffer[i].at == at;
      if (behind || g_chooser->delay()) {
        if (self->late == kBuffer) make_visible(*self);
        self->buffer[self->late++] = {.at = at, .bits = bits, .bytes = bytes, .turn = behind ? 0 : g_turns};
        g_report.late(self->id);
        return;
      }
    }
  }
  memcpy(at, &bits, bytes);
  written(at, bits);
}

void see_own_buffered(const void* at, void* value, unsigned bytes) noexcept {
  Explored* const self = t_self;
  if (self == nullptr) return;
  for (unsigned i = 0; i < self->late; ++i) {
    if (self->buffer[i].at == at) memcpy(value, &self->buffer[i].bits, bytes);
  }
}

void loaded(const void* at, std::uint64_t bits) noexcept {
  Explored* const self = t_self;
  if (self == nullptr) return;
  g_report.value(self->id, bits);
  if (self->read_at != at || self->read_bits != bits) self->read_times = 0;
  self->read_at = at;
  self->read_bits = bits;
  if (++self->read_times >= kVain) self->spins = true;
}

void written(const void* at, std::uint64_t bits) noexcept {
  Explored* const self = t_self;
  if (self == nullptr) return;
  g_report.value(self->id, bits);
  end_spinning(self, at);
}

void barrier_everywhere() noexcept {
  for (int i = 0; i < g_used; ++i) make_all_visible(g_threads[i]);
}

void forget_buffered() noexcept {
  if (t_self != nullptr) make_all_visible(*t_self);
}

bool sleep_on(const void* at, std::int64_t due_ns) noexcept {
  Explored& self = *t_self;
  make_all_visible(self);
  self.state = Explored::State::asleep;
  self.sleeps_on = at;
  self.due_ns = due_ns;
  self.asleep_since = g_steps;
  self.read_at = nullptr;
  let_others(self);
  return !self.timed_out;
}

void wake_one(const void* at) noexcept {
  Explored* longest = nullptr;
  for (int i = 0; i < g_used; ++i) {
    Explored& one = g_threads[i];
    if (one.state == Explored::State::asleep && one.sleeps_on == at &&
        (longest == nullptr || one.asleep_since < longest->asleep_since)) {
      longest = &one;
    }
  }
  if (longest != nullptr) wake_up(*longest, false);
}

bool loses_this_wake() noexcept {
  return g_mutant == Mutant::lost_wake && ++g_wakes % 2 == 0;
}

std::int64_t now_ns() noexcept {
  return g_now_ns;
}

void let_others_go() noexcept {
  Explored& self = *t_self;
  make_all_visible(self);
  self.read_at = &kAnything;
  self.spins = self.polls = true;
  g_chooser->gives_way(self.id);
  let_others(self);
  self.spins = false;
}

void require(bool right, std::source_location where) noexcept {
  if (!right) fail("what is required does not hold", &where);
}

unsigned time_passed() noexcept {
  return g_time_passed;
}

int start(Body body, void* argument) noexcept {
  before(Step::start, nullptr, std::memory_order_seq_cst, std::source_location::current());
  return add_thread(body, argument);
}

void join(int thread) noexcept {
  Explored& other = g_threads[thread];
  before(Step::join, nullptr, std::memory_order_seq_cst, std::source_location::current());
  if (other.state != Explored::State::ended) sleep_on(&other, kNever);
}

}  // namespace coir::explore
