#pragma once

// The next start explains the last end: a record on disk of how each run of a program ended.
//
//   auto last = coir::EndRecord::begin("/var/lib/sensor", {.program = "sensor", .version = "1.2"});
//   if (!last) return complain(last.error());
//   if (last->any) show(last->text());
//   coir::EndRecord::note(coir::End::clean);      // at the end of main

#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

// End is how a run ended.
//
//   clean            it was asked to stop, and did
//   failed           it ended by itself, with a line of its own about it
//   crash            by a signal of an instruction or by abort()
//   stack_overflow   a fiber, or the main thread, has used up its stack
//   hang             a watchdog has found a thread that did not come back
//   forbidden_call   by a system call that a filter refuses (SIGSYS)
//   killed           by a signal that no program can catch
//   out_of_memory    so, and the kernel has killed for want of memory since the start
//   power_cut        without a word, and the machine has booted since
enum class End : std::uint8_t {
  none,  // it still runs
  clean,
  failed,
  crash,
  stack_overflow,
  hang,
  forbidden_call,
  killed,
  out_of_memory,
  power_cut,
};
inline constexpr std::size_t kEnds = 10;

// end_name is its name: "stack_overflow".
std::string_view end_name(End end) noexcept;

// EndRecordOptions tells what is written of a run.
struct EndRecordOptions {
  std::string_view program, version;
  // Copies the latest lines of the log, the oldest first, and returns them; from a signal handler, too. Null: there is none.
  std::string_view (*log)(std::span<char> into) noexcept = nullptr;
  const char* boot_id = "/proc/sys/kernel/random/boot_id";
  const char* memory_events = "/proc/vmstat";
};

// LastEnd is what begin has found.
struct LastEnd {
  bool any = false;                  // there was a run before
  End end = End::none;               // how it ended
  unsigned damaged = 0;              // records that are none, and were left out
  std::uint64_t counts[kEnds] = {};  // of all ends since the file was made

  // text is how it ended in one sentence, with no new line behind it.
  std::string_view text() const noexcept { return {room, size}; }
  char room[320];
  std::size_t size = 0;
};

// EndRecord is the record of this run in the file "crashes" of a folder: text, in a file that is written whole when it is
// made, so that a full disk cannot prevent it. The last five runs that did not end clean or failed are kept.
class EndRecord {
 public:
  static constexpr std::size_t kSlots = 7;
  static constexpr std::size_t kSlotBytes = 8192;
  static constexpr std::size_t kKept = 5;

  // begin explains the end of the last run and opens the record of this one; a crash is written to it from now on, as
  // coir/crash.h tells. Before the run, once. The views must outlive it. Errors: busy (another process has the
  // folder's record), no_memory, not_found, limit (no descriptor left), system.
  [[nodiscard]] static std::expected<LastEnd, Error> begin(const char* folder,
                                                           const EndRecordOptions& options) noexcept;

  // note writes how this run ends, with one line about it and the latest lines of the log, and waits for the disk. A later
  // end takes its place, but after a hang a crash is still that hang. Nothing happens without a record. Any thread.
  static void note(End end, std::string_view text = {}) noexcept;

  // close gives the file up. For tests: a process that ends needs none.
  static void close() noexcept;
};

// PastEnd is one record, in memory of the caller's.
struct PastEnd {
  std::uint64_t number = 0;  // of the run: they count up
  End end = End::none;       // none: it still runs
  std::string_view head, tail;

  // value is that of the first line "KEY: VALUE"; empty: there is none.
  std::string_view value(std::string_view key) const noexcept;
  // next_of takes the next line of `key` off `lines`, which begins as head or tail. False: there is no more.
  static bool next_of(std::string_view key, std::string_view& lines, std::string_view& value) noexcept;
};

// PastEnds, in past_ends.cpp, reads the records of a folder, also beside the program that writes them.
class PastEnds {
 public:
  PastEnds() noexcept = default;
  PastEnds(const PastEnds&) = delete;
  PastEnds& operator=(const PastEnds&) = delete;
  ~PastEnds();

  // open finds the records. Errors: invalid (the name is too long), not_found, limit (no
  // descriptor left), system.
  [[nodiscard]] std::expected<void, Error> open(const char* folder, const EndRecordOptions& options = {}) noexcept;
  // read reads the next older record, beginning with the newest, into `room`. False: there is no more.
  bool read(std::span<char, EndRecord::kSlotBytes> room, PastEnd& record) noexcept;
  unsigned damaged() const noexcept { return damaged_; }
  // running tells that a program held the record when it was opened. A kernel without locks of files cannot tell: then it
  // tells that the newest record, once it was read, is that of a process that lives.
  bool running() const noexcept { return running_; }

 private:
  int fd_ = -1;
  bool running_ = false, without_locks_ = false;
  unsigned damaged_ = 0;
  std::uint64_t below_ = UINT64_MAX;
  EndRecordOptions options_;
};

}  // namespace coir
