// The next run explains the last end, whatever it was, and whatever has become of the file.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/crash.h>
#include <coir/end_record.h>
#include <coir/format.h>
#include <coir/program.h>
#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/stack_size.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tests/support/child.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"
#include "tests/support/without_syscall.h"

// Set in a child that is about to crash: it says so if it allocates from then on.
static bool g_crashing = false;
extern "C" {
void* __real_malloc(size_t);
void* __wrap_malloc(size_t);
void* __wrap_malloc(size_t size) {
  if (g_crashing) static_cast<void>(!write(STDERR_FILENO, "allocated\n", 10));
  return __real_malloc(size);
}
void* __real_calloc(size_t, size_t);
void* __wrap_calloc(size_t, size_t);
void* __wrap_calloc(size_t count, size_t size) {
  if (g_crashing) static_cast<void>(!write(STDERR_FILENO, "allocated\n", 10));
  return __real_calloc(count, size);
}
}

namespace end_record_test {

using coir::End;
using coir::EndRecord;
using coir::LastEnd;
using coir::PastEnd;
using coir::PastEnds;
using coir::test::ChildEnd;
using coir::test::in_child;

namespace {

std::string_view two_lines(std::span<char> into) noexcept {
  return coir::format(into, "test: first\ntest: second\n");
}

// Each call takes a frame of its own, which is written to.
[[gnu::noinline]] int descend(int depth) {
  volatile char frame[200];
  for (volatile char& byte : frame) byte = static_cast<char>(depth);
  const int deeper = depth > 0 ? descend(depth - 1) : 0;
  return deeper + frame[depth % 200];
}

[[gnu::noinline]] int fail_at(std::uintptr_t address) {
  return *reinterpret_cast<volatile int*>(address);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_GROUP(EndRecord) {
  char folder[64] = "/tmp/coir-ends.XXXXXX";
  char boot[80], events[80], path[80];
  coir::EndRecordOptions options{.program = "test", .version = "1.2", .log = two_lines};
  static inline char room[EndRecord::kSlotBytes];

  TEST_SETUP() {
    CHECK_TRUE(mkdtemp(folder) != nullptr);
    snprintf(boot, sizeof boot, "%s/boot", folder);
    snprintf(events, sizeof events, "%s/events", folder);
    snprintf(path, sizeof path, "%s/crashes", folder);
    write_file(boot, "first-boot\n");
    write_kills(3);
    options.boot_id = boot;
    options.memory_events = events;
  }
  TEST_TEARDOWN() {
    EndRecord::close();
    for (const char* each : {boot, events, path}) unlink(each);
    rmdir(folder);
  }

  // The line is far down, as in the kernel's file.
  void write_kills(unsigned kills) {
    static char text[6000];
    int used = 0;
    for (int i = 0; i < 150; ++i) used += snprintf(text + used, sizeof text - used, "nr_of_something_long %d\n", i);
    snprintf(text + used, sizeof text - used, "oom_kill %u\nnr_more 1\n", kills);
    write_file(events, text);
  }
  void write_file(const char* name, std::string_view text, off_t at = 0) {
    const int fd = open(name, O_WRONLY | O_CREAT | (at == 0 ? O_TRUNC : 0), 0600);
    LONGS_EQUAL(text.size(), pwrite(fd, text.data(), text.size(), at));
    close(fd);
  }

  // run has a child begin a record and then end by `body`.
  template <class Body>
  ChildEnd run(Body body) {
    return in_child([&] {
      if (!EndRecord::begin(folder, options)) return 9;
      g_crashing = true;
      return body();
    });
  }
  // A sanitizer takes some signals for itself, and exits.
  static bool ended_by(const ChildEnd& end, int signal) {
    return end.signal == signal || ((COIR_ASAN || COIR_TSAN) && end.status > 0);
  }
  ChildEnd run_and_note(End end) {
    return run([end] {
      EndRecord::note(end);
      return 0;
    });
  }

  // begin begins a record here, and gives it up without an end.
  LastEnd begin() {
    const auto last = EndRecord::begin(folder, options);
    CHECK_TRUE(last.has_value());
    EndRecord::close();
    return *last;
  }
  PastEnd newest() {
    PastEnds ends;
    PastEnd record;
    CHECK_TRUE(ends.open(folder, options).has_value() && ends.read(room, record));
    return record;
  }
};

TEST(EndRecord, the_first_run_has_nothing_to_explain) {
  const LastEnd last = begin();
  CHECK_FALSE(last.any);
  LONGS_EQUAL(0, last.damaged);
}

TEST(EndRecord, a_crash_is_written_without_allocation_and_takes_its_usual_effect) {
  const ChildEnd end = run([] { return fail_at(0x10); });
  CHECK_TRUE(ended_by(end, SIGSEGV));
  CHECK_FALSE(end.wrote("allocated"));
  const PastEnd record = newest();
  CHECK_TRUE(record.end == End::crash);
  CHECK_TRUE(has(record.value("text"), "SIGSEGV at 0x10"));
  CHECK_TRUE(record.value("version") == "1.2" && record.value("program") == "test");
  CHECK_TRUE(record.value("boot") == "first-boot");
  LONGS_EQUAL(coir::build_id().size() * 2, record.value("build").size());
  CHECK_TRUE(record.value("call").starts_with("0x"));
  std::string_view lines = record.tail, line;
  CHECK_TRUE(PastEnd::next_of("log", lines, line) && line == "test: first");
  CHECK_TRUE(PastEnd::next_of("log", lines, line) && line == "test: second");
  const LastEnd last = begin();
  CHECK_TRUE(last.any && last.end == End::crash && has(last.text(), "crashed after "));
  LONGS_EQUAL(1, last.counts[static_cast<std::size_t>(End::crash)]);
}

TEST(EndRecord, abort_and_a_signal_that_was_sent_are_crashes) {
  LONGS_EQUAL(SIGABRT, run([]() -> int { abort(); }).signal);
  CHECK_TRUE(newest().end == End::crash && has(newest().value("text"), "SIGABRT"));
  CHECK_TRUE(ended_by(run([] { return kill(getpid(), SIGFPE); }), SIGFPE));
  CHECK_TRUE(newest().end == End::crash && has(newest().value("text"), "SIGFPE"));
}

TEST(EndRecord, a_forbidden_system_call_is_one) {
  LONGS_EQUAL(SIGSYS, run([] { return raise(SIGSYS); }).signal);
  CHECK_TRUE(newest().end == End::forbidden_call);
}

TEST(EndRecord, an_overflow_of_the_main_stack_is_one) {
  run([] { return descend(100'000'000); });
  CHECK_TRUE(newest().end == End::stack_overflow);
  CHECK_TRUE(has(newest().value("text"), "the main thread's "));
}

#if !COIR_NO_ASYNC
TEST(EndRecord, a_crash_names_the_fiber) {
  run([] {
    return coir::run({.workers = 1}, [] { coir::spawn({.name = "reader"}, [] { fail_at(0x10); }).detach(); });
  });
  const PastEnd record = newest();
  CHECK_TRUE(record.end == End::crash && record.value("fiber_name") == "reader");
  CHECK_TRUE(has(record.value("spawned_at"), "end_record_test.cpp:"));
  CHECK_TRUE(has(record.value("text"), " \"reader\""));
}

TEST(EndRecord, an_overflow_names_the_fiber_and_its_stack) {
  const ChildEnd end = run([] {
    return coir::run({.workers = 1}, [] {
      coir::spawn({.name = "diver", .stack = coir::operator""_KiB(8)}, [] { descend(1'000'000); }).detach();
    });
  });
  CHECK_TRUE(end.wrote("overflowed its 8 KB stack\n"));
  CHECK_FALSE(end.wrote("allocated"));
  const PastEnd record = newest();
  CHECK_TRUE(record.end == End::stack_overflow && record.value("fiber_name") == "diver");
  CHECK_TRUE(record.value("stack_bytes") == "8192");
  CHECK_TRUE(record.value("call").starts_with("0x"));
}
#endif

TEST(EndRecord, without_a_word_the_boot_tells_a_kill_from_a_power_cut) {
  run([] { return raise(SIGKILL); });
  CHECK_TRUE(newest().end == End::killed);
  CHECK_TRUE(begin().end == End::killed);
  run([] { return raise(SIGKILL); });
  write_file(boot, "second-boot\n");
  CHECK_TRUE(begin().end == End::power_cut);
  const LastEnd last = begin();
  LONGS_EQUAL(1, last.counts[static_cast<std::size_t>(End::power_cut)]);
  CHECK_TRUE(last.end == End::killed);  // what begin leaves
}

TEST(EndRecord, a_kill_after_the_kernel_has_killed_for_memory_is_called_so) {
  run([] { return raise(SIGKILL); });
  write_kills(4);
  CHECK_TRUE(begin().end == End::out_of_memory);
}

TEST(EndRecord, an_end_that_is_noted_is_told) {
  LONGS_EQUAL(0, run_and_note(End::clean).status);
  CHECK_TRUE(begin().end == End::clean);
  run_and_note(End::failed);
  CHECK_TRUE(begin().end == End::failed);
}

TEST(EndRecord, a_hang_stays_one_when_its_watchdog_aborts) {
  run([]() -> int {
    EndRecord::note(End::hang, "fiber 7 held its worker for 5 s");
    abort();
  });
  const PastEnd record = newest();
  CHECK_TRUE(record.end == End::hang);
  CHECK_TRUE(has(record.value("text"), "fiber 7 held its worker for 5 s"));
  CHECK_TRUE(record.value("call").starts_with("0x"));
}

TEST(EndRecord, the_last_five_are_kept_and_clean_ends_push_none_out) {
  for (int i = 0; i < 9; ++i) run([]() -> int { abort(); });
  for (int i = 0; i < 12; ++i) run_and_note(i % 2 == 0 ? End::clean : End::failed);
  PastEnds ends;
  CHECK_TRUE(ends.open(folder, options).has_value());
  PastEnd record;
  std::uint64_t crashes[9] = {};
  std::size_t count = 0;
  while (ends.read(room, record)) {
    if (record.end == End::crash) crashes[count++] = record.number;
  }
  LONGS_EQUAL(5, count);
  for (std::uint64_t i = 0; i < 5; ++i) LONGS_EQUAL(9 - i, crashes[i]);
  LONGS_EQUAL(9, begin().counts[static_cast<std::size_t>(End::crash)]);
}

TEST(EndRecord, the_file_has_its_size_from_the_start) {
  begin();
  struct stat status;
  LONGS_EQUAL(0, stat(path, &status));
  LONGS_EQUAL(EndRecord::kSlots * EndRecord::kSlotBytes, status.st_size);
  run([]() -> int { abort(); });
  LONGS_EQUAL(0, stat(path, &status));
  LONGS_EQUAL(EndRecord::kSlots * EndRecord::kSlotBytes, status.st_size);
}

TEST(EndRecord, a_damaged_record_is_counted_and_the_others_are_read) {
  for (int i = 0; i < 3; ++i) run([]() -> int { abort(); });
  write_file(path, "\1\xff garbage \n\n\x7f", EndRecord::kSlotBytes + 40);  // in the head of the second
  PastEnds ends;
  CHECK_TRUE(ends.open(folder, options).has_value());
  PastEnd record;
  CHECK_TRUE(ends.read(room, record) && record.number == 3 && record.end == End::crash);
  CHECK_TRUE(ends.read(room, record) && record.number == 1 && record.end == End::crash);
  CHECK_FALSE(ends.read(room, record));
  LONGS_EQUAL(1, ends.damaged());
  const LastEnd last = begin();
  CHECK_TRUE(last.end == End::crash);
  LONGS_EQUAL(1, last.damaged);
  LONGS_EQUAL(0, begin().damaged);  // its place was taken
}

TEST(EndRecord, a_file_that_was_cut_off_keeps_what_is_there_and_grows_again) {
  for (int i = 0; i < 3; ++i) run([]() -> int { abort(); });
  LONGS_EQUAL(0, truncate(path, EndRecord::kSlotBytes + 100));
  const LastEnd last = begin();
  CHECK_TRUE(last.any && last.end == End::crash);
  LONGS_EQUAL(1, last.damaged);
  struct stat status;
  LONGS_EQUAL(0, stat(path, &status));
  LONGS_EQUAL(EndRecord::kSlots * EndRecord::kSlotBytes, status.st_size);
}

TEST(EndRecord, a_file_of_something_else_is_damaged_and_taken_over) {
  static char noise[EndRecord::kSlots * EndRecord::kSlotBytes];
  unsigned seed = 1;
  for (char& each : noise) each = static_cast<char>(seed = seed * 1664525 + 1013904223);
  write_file(path, {noise, sizeof noise});
  const LastEnd last = begin();
  CHECK_FALSE(last.any);
  LONGS_EQUAL(EndRecord::kSlots, last.damaged);
  CHECK_TRUE(begin().end == End::killed);
}

TEST(EndRecord, an_end_that_was_cut_off_while_it_was_written_still_has_its_kind) {
  run([]() -> int { abort(); });
  static char text[EndRecord::kSlotBytes];
  const int fd = open(path, O_RDWR);
  LONGS_EQUAL(sizeof text, pread(fd, text, sizeof text, 0));
  const std::size_t at = std::string_view(text, sizeof text).find("\nsignal: ");
  std::fill(text + at + 4, text + sizeof text, '\n');
  LONGS_EQUAL(sizeof text, pwrite(fd, text, sizeof text, 0));
  close(fd);
  CHECK_TRUE(newest().end == End::crash);
  CHECK_TRUE(begin().end == End::crash);
}

TEST(EndRecord, one_process_at_a_time_has_the_record) {
  CHECK_TRUE(EndRecord::begin(folder, options).has_value());
  // A descriptor of its own, as another program has.
  const ChildEnd other = in_child([&] {
    const auto second = EndRecord::begin(folder, options);
    return second.has_value() ? 8 : second.error() == coir::ErrorCode::busy ? 0 : 7;
  });
  LONGS_EQUAL(0, other.status);
  CHECK_TRUE(newest().end == End::none);  // it runs
}

TEST(EndRecord, a_reader_that_looks_at_the_file_costs_no_run_its_record) {
  begin();
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  LONGS_EQUAL(0, flock(reader, LOCK_SH | LOCK_NB));
  const auto starting = static_cast<pid_t>(syscall(SYS_gettid));
  coir::test::Thread looks([&] {
    coir::test::until_blocked(starting);
    close(reader);
  });
  const auto last = EndRecord::begin(folder, options);
  looks.join();
  CHECK_TRUE(last.has_value());
}

TEST(EndRecord, without_locks_of_files_the_record_tells_of_its_program) {
  char name[32];
  const int comm = open("/proc/self/comm", O_RDONLY);
  const ssize_t size = read(comm, name, sizeof name);
  close(comm);
  name[size - 1] = '\0';
  options.program = name;
  const auto without_locks = [](auto body) {
    return in_child([&] {
             if (!coir::test::forget_syscall(SYS_flock)) return 77;
             return body();
           })
        .status;
  };
  const auto try_to_begin = [this] {
    const auto second = EndRecord::begin(folder, options);
    return second ? 0 : second.error() == coir::ErrorCode::busy ? 1 : 2;
  };
  const auto runs = [this] {
    PastEnds ends;
    PastEnd record;
    return ends.open(folder, options).has_value() && ends.read(room, record) && ends.running() ? 1 : 0;
  };
  const int first = without_locks(try_to_begin);
  if (first == 77) return;  // this kernel takes no filter
  LONGS_EQUAL(0, first);
  LONGS_EQUAL(0, without_locks(runs));
  CHECK_TRUE(newest().end == End::killed);
  CHECK_TRUE(EndRecord::begin(folder, options).has_value());
  LONGS_EQUAL(1, without_locks(runs));
  LONGS_EQUAL(1, without_locks(try_to_begin));
  options.program = "another";  // the number is that of a process with another name
  EndRecord::close();
  CHECK_TRUE(EndRecord::begin(folder, options).has_value());
  LONGS_EQUAL(0, without_locks(try_to_begin));
}

TEST(EndRecord, a_folder_that_is_not_there_is_an_error) {
  const auto last = EndRecord::begin("/nonexistent", options);
  CHECK_TRUE(!last && last.error() == coir::ErrorCode::not_found);
  EndRecord::note(End::clean);  // without effect
}

}  // namespace end_record_test
