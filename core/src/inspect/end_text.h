#pragma once

#include <coir/end_record.h>
#include <coir/format.h>

namespace coir {

// The text of a record. A slot of the file holds one:
//
//   coir run 1                         the format
//   number: 17                         lines "key: value" of the start ...
//   ...
//   # sum: 0011aabb                    ... and the sum of all bytes before this line
//   end: crash                         the end, if there was one: lines, and a sum of their own
//   ...
//   # sum: 0011aabb
//
// New lines, or an older text, fill the rest.
inline constexpr std::string_view kFormatLine = "coir run 1\n";

// SlotState tells what a slot holds.
enum class SlotState : std::uint8_t { empty, whole, damaged };

// read_slot takes a slot's text apart. If an end is cut off or damaged, its first line alone
// counts.
SlotState read_slot(std::string_view slot, PastEnd& record) noexcept;

// read_slot_of reads a slot of the file into `room`, which `record` refers to. A slot that cannot be read is damaged.
SlotState read_slot_of(int fd, std::size_t slot, std::span<char> room, PastEnd& record) noexcept;

// add_sum closes the lines that `text` holds so far, all of them.
void add_sum(Formatter& text) noexcept;

// signal_name is the name of a signal of coir/crash.h.
std::string_view signal_name(int signal) noexcept;

// read_number reads a decimal number; 0 if it is none.
std::uint64_t read_number(std::string_view text) noexcept;

// Since is what tells how a run ended that left no word.
struct Since {
  char boot[40];
  std::size_t boot_size;
  std::uint64_t memory_kills;

  explicit Since(const EndRecordOptions& options) noexcept;
  std::string_view boot_id() const noexcept { return {boot, boot_size}; }
  // judge judges a run whose record has no end.
  End judge(const PastEnd& record) const noexcept;
  // lives tells whether the run is a process still, on kernels without locks of files. The process must have the program's
  // name: its number alone may be another's by now.
  bool lives(const PastEnd& record) const noexcept;
};

// describe_end writes one sentence about an end.
std::string_view describe_end(End end, const PastEnd& record, std::span<char> room) noexcept;

}  // namespace coir
