#pragma once

// Terminals, pipes and devices.
//
//   auto line = DescriptorStream::open("/dev/ttyS1", {.read = true, .write = true}, Deadline::after(1s));
//   if (!line) return complain(line.error());
//   while (auto size = line->read(buffer)) show(std::string_view(buffer, *size));      // until end_of_stream

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

#include <coir/deadline.h>
#include <coir/descriptor.h>
#include <coir/detail/used_descriptor.h>
#include <coir/error.h>
#include <coir/file.h>

namespace coir {

// DescriptorStream is any descriptor as a stream of bytes: a pipe, a terminal, a serial line or another device, a
// socket, or standard input, whatever that is. Move-only; the destructor closes.
//
// Called the same way from a fiber, a plain thread and in a build without fibers: where a call has to wait it goes
// through coir::wait. A regular file never lets its caller wait; on a fiber its calls run on the pool of
// coir/blocking.h, as those of coir::File. One reader and one writer may use a stream at the same time. Nothing is
// allocated. To write to a pipe that nobody reads raises SIGPIPE, which the program ignores or ends by.
class DescriptorStream {
 public:
  constexpr DescriptorStream() noexcept = default;
  DescriptorStream(DescriptorStream&&) noexcept = default;
  DescriptorStream& operator=(DescriptorStream&&) noexcept = default;
  ~DescriptorStream() { close(); }

  // open opens a path: a device, a named pipe or a file. A named pipe is written to only while somebody reads it
  // (ENXIO). Errors: those of File::open and adopt.
  [[nodiscard]] static std::expected<DescriptorStream, Error> open(const char* path, const FileOptions& options = {},
                                                                   Deadline deadline = Deadline::never()) noexcept;

  // adopt takes over an open descriptor, which it makes non-blocking. Other processes that share its open file see
  // that: share inherited descriptors instead. On an error the descriptor stays the caller's. Never waits. Errors:
  // unsupported (a folder), system.
  [[nodiscard]] static std::expected<DescriptorStream, Error> adopt(int fd) noexcept;

  // share makes a stream of what `fd` is open to and leaves `fd` as it is, its flags included: for standard input,
  // output and error. A pipe, a terminal or a device is opened a second time by /proc; a regular file and a socket are
  // duplicated. Never waits. Errors: unsupported (a folder), limit, system (/proc is not mounted).
  [[nodiscard]] static std::expected<DescriptorStream, Error> share(int fd) noexcept;

  // read waits until at least one byte is there and returns how many were put into `into`, which must not be empty.
  // Errors: invalid (`into` is empty), end_of_stream (every writer has closed, the terminal has hung up, the file
  // ends), timed_out, cancelled, closed, system; no_memory and limit as for File.
  [[nodiscard]] std::expected<std::size_t, Error> read(std::span<char> into,
                                                       Deadline deadline = Deadline::never()) noexcept;

  // write writes all of `from`. On an error some of it may have been written.
  // Errors: those of write_some.
  [[nodiscard]] std::expected<void, Error> write(std::string_view from, Deadline deadline = Deadline::never()) noexcept;

  // write_some waits until something can be written and returns how many bytes were, at least one unless `from` is
  // empty. Errors: invalid, timed_out, cancelled, closed (every reader has closed), no_memory, limit, system.
  [[nodiscard]] std::expected<std::size_t, Error> write_some(std::string_view from,
                                                             Deadline deadline = Deadline::never()) noexcept;

  // wait returns when the stream may be read, or written, without waiting, or has hung up. wait_either does so for both
  // directions at once and tells which, reading first. May be called at any time. Costs a system call even if it need
  // not wait. Errors: as coir::wait.
  [[nodiscard]] std::expected<void, Error> wait(Direction direction, Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<Direction, Error> wait_either(Deadline deadline = Deadline::never()) noexcept;

  // close wakes the fibers that wait on this stream with `closed`; the last of those who use it closes the descriptor. A
  // thread that waits is not woken. Idempotent.
  void close() noexcept;

  bool is_open() const noexcept { return descriptor_.is_open(); }
  int fd() const noexcept { return descriptor_.number(); }

 private:
  enum class Kind : unsigned char { stream, socket, file };

  DescriptorStream(int fd, Kind kind) noexcept : descriptor_(fd), kind_(kind) {}
  static std::expected<Kind, Error> kind_of(int fd) noexcept;
  template <class Call>
  std::expected<std::size_t, Error> transfer(const detail::UsedDescriptor::Use& use, Direction direction, Call call,
                                             Deadline deadline) noexcept;

  detail::UsedDescriptor descriptor_;
  Kind kind_ = Kind::stream;
};

}  // namespace coir
