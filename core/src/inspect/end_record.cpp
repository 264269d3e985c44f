#include <coir/end_record.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include <coir/atomic.h>
#include <coir/crash.h>
#include <coir/deadline.h>
#include <coir/file.h>
#include <coir/port/memory.h>
#include <coir/port/seccomp.h>
#include <coir/sum.h>

#include "blocking/file_steps.h"
#include "inspect/end_text.h"

namespace coir {
namespace {

constexpr std::size_t kFileBytes = EndRecord::kSlots * EndRecord::kSlotBytes;
constexpr std::size_t kLogBytes = 4096;

// The record of this run. The image is that of a slot, and then of the end: touched, and resident, only while they are written.
constinit int g_record = -1;
constinit std::size_t g_record_slot = 0;
constinit std::size_t g_head_bytes = 0;
constinit std::int64_t g_began_ns = 0;
using ReadLog = std::string_view (*)(std::span<char> into) noexcept;
constinit ReadLog g_log = nullptr;
constinit SharedAtomic<bool> g_writing{false};
constinit End g_noted = End::none;
constinit char g_noted_text[200] = {};
constinit std::size_t g_noted_size = 0;
alignas(port::kPageBytes) char g_image[EndRecord::kSlotBytes];
char g_log_lines[kLogBytes];

off_t offset_of(std::size_t slot) noexcept {
  return static_cast<off_t>(slot * EndRecord::kSlotBytes);
}

// put_at writes all of `text` at `at` and returns 0, or errno. Async-signal-safe.
int put_at(int fd, std::string_view text, off_t at) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
  return 0;
}

void add_uptime(Formatter& out) noexcept {
  out.add("uptime_ms: ", (monotonic_ns() - g_began_ns) / 1'000'000, "\n");
}

// add_log adds the latest lines of the log, as many as fit. A line's own control bytes stay: a reader escapes them.
void add_log(Formatter& out) noexcept {
  if (g_log == nullptr) return;
  constexpr std::size_t kForSum = 32;
  constexpr std::string_view kKey = "log: ";
  std::string_view lines = g_log(std::span(g_log_lines));
  const auto lines_bytes = [&] {
    return lines.size() + static_cast<std::size_t>(std::ranges::count(lines, '\n') + 1) * kKey.size();
  };
  while (!lines.empty() && lines_bytes() + kForSum > sizeof g_image - g_head_bytes - out.text().size())
    lines.remove_prefix(std::min(lines.find('\n'), lines.size() - 1) + 1);
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find('\n'), lines.size());
    out.add(kKey, lines.substr(0, size), "\n");
    lines.remove_prefix(std::min(size + 1, lines.size()));
  }
}

// finish writes the end that `out` has begun behind the head, and has it reach the disk. Async-signal-safe.
void finish(Formatter& out) noexcept {
  add_log(out);
  add_sum(out);
  static_cast<void>(put_at(g_record, out.text(), offset_of(g_record_slot) + static_cast<off_t>(g_head_bytes)));
  ::fsync(g_record);
}

// room_for_end is the part of the image that an end may fill.
std::span<char> room_for_end() noexcept {
  return std::span(g_image).first(sizeof g_image - g_head_bytes);
}

// add_text adds the sentence about a crash.
void add_text(const Crash& crash, Formatter& out) noexcept {
  out.add("text: ");
  if (g_noted == End::hang) out.add(std::string_view(g_noted_text, g_noted_size), "; ");
  if (crash.overflowed_bytes != 0) {
    out.add(crash.fiber != 0 ? "the fiber's " : "the main thread's ", crash.overflowed_bytes / 1024, " KB stack");
  } else if (crash.signal == SIGSYS && crash.sender == 0) {
    const char* const name = port::system_call_name(static_cast<int>(crash.address));
    if (name != nullptr) out.add(name, ", ");
    out.add("system call ", crash.address);
  } else {
    out.add(signal_name(crash.signal));
    if (crash.sender != 0) {
      if (crash.sender != ::getpid()) out.add(" sent by process ", crash.sender);
    } else if (crash.signal != SIGABRT) {
      out.add(" at 0x", hex(crash.address));
    }
  }
  if (crash.fiber != 0) out.add(", in fiber ", crash.fiber, " \"", crash.name, "\"");
  out.add("\n");
}

// record_crash is the function of on_crash. Signals come in the middle of anything: it takes the image, whoever has it.
void record_crash(const Crash& crash) noexcept {
  g_writing.store(true, std::memory_order_relaxed);
  Formatter out(room_for_end());
  const End end = crash.overflowed_bytes != 0 ? End::stack_overflow
                  : crash.signal == SIGSYS    ? End::forbidden_call
                  : g_noted == End::hang      ? End::hang
                                              : End::crash;
  out.add("end: ", end_name(end), "\n");
  add_uptime(out);
  add_text(crash, out);
  out.add("signal: ", crash.signal, " ", signal_name(crash.signal), "\n");
  out.add("address: 0x", hex(crash.address), "\n");
  if (crash.fiber != 0) {
    out.add("fiber: ", crash.fiber, "\nfiber_name: ", crash.name, "\n");
    out.add("spawned_at: ", crash.where.file_name(), ":", crash.where.line(), "\n");
  }
  if (crash.overflowed_bytes != 0) out.add("stack_bytes: ", crash.overflowed_bytes, "\n");
  for (const std::uintptr_t call : crash.calls) out.add("call: 0x", hex(call), "\n");
  finish(out);
}

// fill_whole writes the file whole, so that nothing of it is missing when the disk is full. Its name reaches the disk,
// too.
int fill_whole(int fd, const char* folder) noexcept {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size >= kFileBytes) return sync_folder(folder);  // an earlier start may have ended before it
  memset(g_image, '\n', sizeof g_image);
  for (std::size_t at = size; at < kFileBytes;) {
    const std::size_t part = std::min(sizeof g_image, kFileBytes - at);
    if (const int error = put_at(fd, {g_image, part}, static_cast<off_t>(at)); error != 0) {
      static_cast<void>(::ftruncate(fd, static_cast<off_t>(size)));
      return error;
    }
    at += part;
  }
  return sync_folder(folder);
}

// Slots is what is in the file.
struct Slots {
  std::uint64_t numbers[EndRecord::kSlots] = {};  // 0: no record
  End ends[EndRecord::kSlots] = {};
  unsigned damaged = 0;
  std::size_t last = EndRecord::kSlots;  // the slot of the last run; kSlots: none
};

Slots look_at(int fd) noexcept {
  Slots found;
  for (std::size_t i = 0; i < EndRecord::kSlots; ++i) {
    PastEnd record;
    const SlotState state = read_slot_of(fd, i, g_image, record);
    found.damaged += state == SlotState::damaged;
    if (state != SlotState::whole) continue;
    found.numbers[i] = record.number;
    found.ends[i] = record.end;
    if (found.last == EndRecord::kSlots || record.number > found.numbers[found.last]) found.last = i;
  }
  return found;
}

// choose is the slot for this run: an empty or damaged one, else the oldest that nobody misses, else the oldest. The last
// run's stays, so that a power cut while the new one is written leaves it.
std::size_t choose(const Slots& found) noexcept {
  std::size_t best = EndRecord::kSlots;
  const auto rank = [&](std::size_t i) noexcept {
    const bool missed = found.ends[i] != End::clean && found.ends[i] != End::failed;
    return found.numbers[i] == 0 ? 0 : found.numbers[i] + (missed ? UINT64_MAX / 2 : 0);
  };
  for (std::size_t i = 0; i < EndRecord::kSlots; ++i) {
    if (i != found.last && (best == EndRecord::kSlots || rank(i) < rank(best))) best = i;
  }
  return best;
}

// explain reads the last run's record, judges it if it has no end, and writes that end.
void explain(int fd, std::size_t slot, const Since& now, LastEnd& last) noexcept {
  PastEnd record;
  if (read_slot_of(fd, slot, g_image, record) != SlotState::whole) return;
  last.any = true;
  last.end = now.judge(record);
  last.size = describe_end(last.end, record, last.room).size();
  for (std::size_t i = 1; i < kEnds; ++i) {
    char key[32];
    last.counts[i] = read_number(record.value(format(key, "ends_", end_name(static_cast<End>(i)))));
  }
  ++last.counts[static_cast<std::size_t>(last.end)];
  if (record.end != End::none) return;
  const auto head = static_cast<std::size_t>(record.head.data() + record.head.size() - g_image) + kSumLineBytes;
  char room[96];
  Formatter out(room);
  out.add("end: ", end_name(last.end), "\n");
  add_sum(out);
  static_cast<void>(put_at(fd, out.text(), offset_of(slot) + static_cast<off_t>(head)));
}

// write_head writes the start of this run's record.
int write_head(int fd, std::size_t slot, std::uint64_t number, const EndRecordOptions& options, const Since& now,
               const LastEnd& last) noexcept {
  Formatter out(g_image);
  out.add(kFormatLine);
  out.add("number: ", number, "\nprogram: ", options.program, "\nversion: ", options.version, "\nbuild: ");
  for (const unsigned char byte : build_id()) out.add(hex(byte, 2));
  out.add("\nboot: ", now.boot_id(), "\nmemory_kills: ", now.memory_kills, "\npid: ", ::getpid());
  out.add("\nbegan: ", static_cast<std::int64_t>(::time(nullptr)), "\n");
  for (std::size_t i = 1; i < kEnds; ++i) out.add("ends_", end_name(static_cast<End>(i)), ": ", last.counts[i], "\n");
  add_sum(out);
  g_head_bytes = out.text().size();
  memset(g_image + g_head_bytes, '\n', sizeof g_image - g_head_bytes);
  return put_at(fd, {g_image, sizeof g_image}, offset_of(slot));
}

// open_record opens the file.
[[gnu::noinline]] UnsharedFile open_record(const char* folder) noexcept {
  char path[256];
  if (Formatter name(path); !name.add(folder, "/crashes", '\0').fits()) return {.error = ENAMETOOLONG};
  return open_unshared(path, O_RDWR, 0600);
}
}  // namespace

std::expected<LastEnd, Error> EndRecord::begin(const char* folder, const EndRecordOptions& options) noexcept {
  const auto [error_of_open, fd, created] = open_record(folder);
  if (fd < 0) return std::unexpected(Error::from_errno(error_of_open));
  const auto give_up = [fd](Error error) noexcept {
    ::close(fd);
    return std::unexpected(error);
  };
  // A reader of the record holds the lock for a moment.
  const bool locked = lock_soon(fd, LOCK_EX);
  if (!locked && errno != ENOSYS)
    return give_up(errno == EWOULDBLOCK ? Error{ErrorCode::busy} : Error::from_errno(errno));
  LastEnd last;
  const Slots found = look_at(fd);
  last.damaged = found.damaged;
  const Since now(options);
  // A kernel without locks of files: the record itself tells of its program.
  if (PastEnd newest; !locked && found.last != kSlots &&
                      read_slot_of(fd, found.last, g_image, newest) == SlotState::whole && now.lives(newest))
    return give_up(ErrorCode::busy);
  if (const int error = fill_whole(fd, folder); error != 0) return give_up(Error::from_errno(error));
  if (found.last != kSlots) explain(fd, found.last, now, last);
  const std::size_t slot = choose(found);
  const std::uint64_t number = found.last != kSlots ? found.numbers[found.last] + 1 : 1;
  if (const int error = write_head(fd, slot, number, options, now, last); error != 0)
    return give_up(Error::from_errno(error));
  if (::fsync(fd) != 0) return give_up(Error::from_errno(errno));
  static_cast<void>(port::give_back(g_image, sizeof g_image));
  g_record_slot = slot;
  g_log = options.log;
  g_began_ns = monotonic_ns();
  g_noted = End::none;
  g_writing.store(false, std::memory_order_relaxed);
  g_record = fd;
  if (auto told = on_crash(record_crash); !told) {
    close();
    return std::unexpected(told.error());
  }
  return last;
}

void EndRecord::note(End end, std::string_view text) noexcept {
  // A crash that is being written is the last word.
  if (g_record < 0 || g_writing.exchange(true, std::memory_order_acquire)) return;
  g_noted = end;
  g_noted_size = std::min(text.find('\n'), std::min(text.size(), sizeof g_noted_text));
  std::ranges::copy(text.substr(0, g_noted_size), g_noted_text);
  Formatter out(room_for_end());
  out.add("end: ", end_name(end), "\n");
  if (end != End::none) add_uptime(out);
  if (g_noted_size != 0) out.add("text: ", std::string_view(g_noted_text, g_noted_size), "\n");
  finish(out);
  g_writing.store(false, std::memory_order_release);
}

void EndRecord::close() noexcept {
  if (g_record < 0) return;
  static_cast<void>(on_crash(nullptr));
  ::close(g_record);
  g_record = -1;
}
}  // namespace coir
