#include "inspect/end_text.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include <coir/file.h>
#include <coir/sum.h>

namespace coir {

namespace {

constexpr std::string_view kSumKey = "# sum: ";
constexpr std::string_view kEndNames[kEnds] = {"none", "clean",          "failed", "crash",         "stack_overflow",
                                               "hang", "forbidden_call", "killed", "out_of_memory", "power_cut"};

// take_lines takes lines off `text` up to their sum, which must be theirs. Empty: they are damaged.
std::string_view take_lines(std::string_view& text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    if (end == text.npos) return {};
    if (text.substr(at).starts_with(kSumKey)) {
      const auto lines = whole_text(text.substr(0, end + 1));
      text.remove_prefix(end + 1);
      return lines.value_or(std::string_view());
    }
    at = end + 1;
  }
  return {};
}

}  // namespace

std::string_view end_name(End end) noexcept {
  return kEndNames[static_cast<std::size_t>(end)];
}

std::string_view signal_name(int signal) noexcept {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "SIGSYS";
  }
}

std::uint64_t read_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || value > UINT64_MAX / 10 - 1) return 0;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

void add_sum(Formatter& text) noexcept {
  char line[kSumLineBytes];
  text.add(sum_line(text.text(), line));
}

SlotState read_slot(std::string_view slot, PastEnd& record) noexcept {
  record = {};
  if (std::ranges::all_of(slot, [](char each) { return each == '\n'; })) return SlotState::empty;
  if (!slot.starts_with(kFormatLine)) return SlotState::damaged;
  record.head = take_lines(slot);
  record.number = read_number(record.value("number"));
  if (record.number == 0) return SlotState::damaged;
  // An end that is cut off still has its first line, which names it.
  const std::string_view first = slot.substr(0, slot.find('\n') + 1);
  record.tail = take_lines(slot);
  if (record.tail.empty()) record.tail = first;
  const auto* const name = std::ranges::find(kEndNames, record.value("end"));
  if (name == std::end(kEndNames)) {
    record.tail = {};
  } else {
    record.end = static_cast<End>(name - kEndNames);
  }
  return SlotState::whole;
}

SlotState read_slot_of(int fd, std::size_t slot, std::span<char> room, PastEnd& record) noexcept {
  const ssize_t got = ::pread(fd, room.data(), room.size(), static_cast<off_t>(slot * EndRecord::kSlotBytes));
  if (got < 0) return SlotState::damaged;
  return read_slot({room.data(), static_cast<std::size_t>(got)}, record);
}

std::string_view PastEnd::value(std::string_view key) const noexcept {
  std::string_view found;
  for (std::string_view lines : {head, tail}) {
    if (next_of(key, lines, found)) return found;
  }
  return {};
}

bool PastEnd::next_of(std::string_view key, std::string_view& lines, std::string_view& value) noexcept {
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, size);
    lines.remove_prefix(std::min(size + 1, lines.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 2) != ": ") continue;
    value = line.substr(key.size() + 2);
    return true;
  }
  return false;
}

namespace {

// count_kills reads a line that is far down in a file of 4 KB: a room for all of it would stay resident.
[[gnu::noinline]] std::uint64_t count_kills(const char* path) noexcept {
  constexpr std::string_view kKey = "oom_kill ";
  const auto file = File::open(path);
  if (!file) return 0;
  char room[512];
  FileLines lines(*file, room);
  while (const auto line = lines.next()) {
    if (line->starts_with(kKey)) return read_number(line->substr(kKey.size()));
  }
  return 0;
}

}  // namespace

Since::Since(const EndRecordOptions& options) noexcept {
  const std::string_view id = slurp(options.boot_id, boot).value_or("");
  boot_size = std::min(id.find('\n'), id.size());
  memory_kills = count_kills(options.memory_events);
}

End Since::judge(const PastEnd& record) const noexcept {
  if (record.end != End::none) return record.end;
  if (record.value("boot") != boot_id()) return End::power_cut;
  return memory_kills > read_number(record.value("memory_kills")) ? End::out_of_memory : End::killed;
}

bool Since::lives(const PastEnd& record) const noexcept {
  if (record.end != End::none || record.value("boot") != boot_id()) return false;
  const std::uint64_t pid = read_number(record.value("pid"));
  if (pid == static_cast<std::uint64_t>(::getpid())) return false;
  char path[40], room[20];
  std::string_view name = slurp(format(path, "/proc/", pid, "/comm", '\0').data(), room).value_or("");
  name = name.substr(0, name.find('\n'));
  return !name.empty() && name == record.value("program").substr(0, 15);
}

std::string_view describe_end(End end, const PastEnd& record, std::span<char> room) noexcept {
  Formatter out(room);
  switch (end) {
    case End::none:
      out.add("it still runs");
      break;
    case End::clean:
      out.add("ended cleanly");
      break;
    case End::failed:
      out.add("ended by itself");
      break;
    case End::crash:
      out.add("crashed");
      break;
    case End::stack_overflow:
      out.add("overflowed a stack");
      break;
    case End::hang:
      out.add("hung");
      break;
    case End::forbidden_call:
      out.add("made a forbidden system call");
      break;
    case End::killed:
      out.add(
          "was killed (SIGKILL, or a signal that nothing handles): it left no word, and the machine has not booted "
          "since");
      break;
    case End::out_of_memory:
      out.add("was killed, and the kernel has killed for want of memory since its start");
      break;
    case End::power_cut:
      out.add("ended with the machine (power cut or reboot): it left no word, and the machine has booted since");
      break;
  }
  if (record.end == End::none) return out.text();  // it was judged: the run itself has left no word
  if (const std::string_view uptime = record.value("uptime_ms"); !uptime.empty())
    out.add(" after ", fixed(read_number(uptime), 3), " s");
  if (const std::string_view text = record.value("text"); !text.empty()) out.add(": ", text);
  return out.text();
}

}  // namespace coir
