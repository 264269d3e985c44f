#pragma once

// Files on disk or flash, without blocking a worker.
//
//   auto log = File::open("/var/log/coird", {.write = true, .create = true, .append = true});
//   if (!log) return complain(log.error());
//   if (auto written = log->write_all(text, Deadline::after(2s)); !written) return complain(written.error());

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/line_cutter.h>
#include <coir/error.h>
#include <coir/ledger.h>

namespace coir {

// FileOptions is how a file is opened: for reading by default, else exactly as asked: a file opened by {.write = true}
// alone cannot be read. `mode` is the permissions of a created file, less the process's umask.
struct FileOptions {
  bool read = false;
  bool write = false;
  bool create = false;     // when it is not there
  bool exclusive = false;  // with create: an error when it is there
  bool truncate = false;
  bool append = false;  // every write goes to the end, also of what others write; implies write
  unsigned mode = 0644;
};

// FileBytes is the content of a file in memory of its own, charged to an account until it is destroyed. Move-only.
class FileBytes {
 public:
  constexpr FileBytes() noexcept = default;
  explicit FileBytes(Account& account) noexcept : account_(&account) {}
  FileBytes(FileBytes&& other) noexcept
      : account_(other.account_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        room_(std::exchange(other.room_, 0)) {}
  FileBytes& operator=(FileBytes&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~FileBytes();

  std::span<const char> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }

 private:
  friend class File;
  std::expected<void, Error> make_room(std::size_t bytes) noexcept;

  Account* account_ = nullptr;
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

// File is an open file on disk or flash. On a fiber its calls run on the pool of coir/blocking.h and park; on a plain
// thread, and in a build without fibers, they block.
//
// Interrupted calls and short reads and writes are continued. Calls that touch the caller's memory wait for the system
// call under way, and check the deadline and cancellation between two pieces of 64 KiB. Not for pipes, sockets or
// terminals: coir/descriptor_stream.h is for those. One call at a time on an object, but for read_at.
//
// Errors of all calls: timed_out, cancelled; no_memory, limit (no thread is free); not_found; the kernel's, `system`
// with its errno.
class File {
 public:
  constexpr File() noexcept = default;
  // Takes over an open descriptor.
  explicit File(int fd) noexcept : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  // Closes. To learn of errors, call sync or close before.
  ~File() { static_cast<void>(close()); }

  // open opens `path`, not to be inherited by child processes.
  [[nodiscard]] static std::expected<File, Error> open(const char* path, const FileOptions& options = {},
                                                       Deadline deadline = Deadline::never()) noexcept;

  // read_at reads from `offset` until `into` is full or the file ends, and returns how many bytes, of which there is at
  // least one unless `into` is empty. Several fibers may read one File at a time.
  // Errors: end_of_stream (the file ends at or before `offset`).
  [[nodiscard]] std::expected<std::size_t, Error> read_at(std::span<char> into, std::uint64_t offset,
                                                          Deadline deadline = Deadline::never()) const noexcept;

  // read_all reads the whole file, from its start, and returns its size. Error: limit (it is longer than `into`).
  [[nodiscard]] std::expected<std::size_t, Error> read_all(std::span<char> into,
                                                           Deadline deadline = Deadline::never()) const noexcept;

  // read_all reads the whole file, from its start, of `most` bytes at most, into memory charged to `account` as it
  // grows. Errors: limit (it is longer than `most`, or the account's ceiling is met), no_memory.
  [[nodiscard]] std::expected<FileBytes, Error> read_all(Account& account, std::size_t most,
                                                         Deadline deadline = Deadline::never()) const noexcept;

  // write_all writes all of `bytes` where the last write ended, or at the end of a file opened to append. After an
  // error a part may be written.
  [[nodiscard]] std::expected<void, Error> write_all(std::span<const char> bytes,
                                                     Deadline deadline = Deadline::never()) noexcept;

  // sync returns when what was written would survive a loss of power (fsync).
  [[nodiscard]] std::expected<void, Error> sync(Deadline deadline = Deadline::never()) noexcept;

  [[nodiscard]] std::expected<std::uint64_t, Error> size() const noexcept;

  // close closes at once, and returns an error that the kernel has kept until now. Idempotent.
  std::expected<void, Error> close() noexcept;

  // release hands the descriptor over to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

// append_to adds `bytes` to the end of the file at `path`, which it creates when it is not there. One write as a rule,
// so that lines of several writers do not mix. Errors: File's.
[[nodiscard]] std::expected<void, Error> append_to(const char* path, std::span<const char> bytes,
                                                   Deadline deadline = Deadline::never()) noexcept;

// replace_file makes `bytes` the content of the file at `path`, so that a reader finds the old content or the new one,
// whole, at any time and after a loss of power: a temporary file in the same folder (".coir-" and sixteen digits) is
// written and synced, takes the name, and the folder is synced. The mode is `mode` if given, else that of the file that
// is replaced, else 0644 less the umask; the owner is kept where the process may. A symbolic link is replaced, not
// followed. On failure the temporary file is removed and the old file untouched, but where the last step failed, the
// sync of the folder. Only a process that is killed in the middle leaves the temporary file. The deadline and
// cancellation count until the name is taken. Errors: File's.
[[nodiscard]] std::expected<void, Error> replace_file(const char* path, std::span<const char> bytes,
                                                      std::optional<unsigned> mode = std::nullopt,
                                                      Deadline deadline = Deadline::never()) noexcept;

// remove_file removes the file at `path`, for good: it returns when a loss of power would not bring it back. Errors:
// not_found, File's.
[[nodiscard]] std::expected<void, Error> remove_file(const char* path, Deadline deadline = Deadline::never()) noexcept;

// FileReplacement is replace_file piece by piece, for a content that comes from a stream:
//
//   auto next = FileReplacement::begin("/data/firmware", 0644, deadline);
//   while (next && (got = stream.read(buffer, deadline))) written = next->write({buffer, *got}, deadline);
//   if (next && got.error() == ErrorCode::end_of_stream) done = next->commit(deadline);
//
// Until commit a reader finds the old content. Without a successful commit nothing is left of the new one: abort, and
// the destructor, remove the temporary file, in place. A write that has failed makes commit fail by the same error.
// Move-only; one call at a time.
class FileReplacement {
 public:
  constexpr FileReplacement() noexcept = default;
  FileReplacement(FileReplacement&& other) noexcept { *this = std::move(other); }
  FileReplacement& operator=(FileReplacement&& other) noexcept;
  ~FileReplacement() { abort(); }

  // begin creates the temporary file; `path` and `mode` are replace_file's. Errors: those of replace_file.
  [[nodiscard]] static std::expected<FileReplacement, Error> begin(const char* path,
                                                                   std::optional<unsigned> mode = std::nullopt,
                                                                   Deadline deadline = Deadline::never()) noexcept;

  // begin_at is begin for the file `name` in the folder that `folder` is open for, be it by name only (O_PATH). `name`
  // holds no slash, or `invalid` is returned; no other path is looked up. `folder` stays the caller's.
  // Errors: invalid, and those of replace_file.
  [[nodiscard]] static std::expected<FileReplacement, Error> begin_at(int folder, std::string_view name,
                                                                      std::optional<unsigned> mode = std::nullopt,
                                                                      Deadline deadline = Deadline::never()) noexcept;

  // write adds all of `bytes` to the end of the new content. Errors: closed (committed or aborted); timed_out,
  // cancelled, no_memory, limit (no thread is free), system.
  [[nodiscard]] std::expected<void, Error> write(std::span<const char> bytes,
                                                 Deadline deadline = Deadline::never()) noexcept;

  // date_from gives the new content the date of its last change, which else is the time of its writing. Errors: closed;
  // system.
  [[nodiscard]] std::expected<void, Error> date_from(const timespec& changed) noexcept;

  // commit syncs the new content, has it take the name and syncs the folder. Once; afterwards nothing is open.
  // Errors: closed (committed or aborted); timed_out, cancelled, no_memory, limit (no thread is free), system.
  [[nodiscard]] std::expected<void, Error> commit(Deadline deadline = Deadline::never()) noexcept;

  // abort removes what was written. Idempotent; nothing after a commit.
  void abort() noexcept;

  // A kill leaves a temporary file. is_temporary tells whether a name is that of one. may_sweep tells whether no
  // replacement of any process is under way in the folder that `folder` is open for, to be read; others then wait to
  // begin until `folder` is closed, or 100 ms, so that its temporary files may be removed.
  [[nodiscard]] static bool is_temporary(std::string_view name) noexcept;
  [[nodiscard]] static bool may_sweep(int folder) noexcept;

  // is_open tells that it may still be committed or aborted.
  bool is_open() const noexcept { return file_ >= 0; }

 private:
  friend std::expected<void, Error> replace_file(const char* path, std::span<const char> bytes,
                                                 std::optional<unsigned> mode, Deadline deadline) noexcept;
  friend std::expected<void, Error> remove_file(const char* path, Deadline deadline) noexcept;
  class Steps;

  int folder_ = -1;
  int file_ = -1;
  Error failed_;                  // by what a write has failed; code 0: none has
  char temporary_name_[24] = {};  // empty: there is no file of it
  char name_[256] = {};
};

// open_unshared (slurp.cpp) opens the file at `path`, or creates it with `mode`, for a program that may be root in a folder where
// another user may write, too: no link, no file that has another name, and no pipe or device. With mode 0 it creates none.
// `flags` are open(2)'s. It blocks.
// Returns 0 and the descriptor, or errno.
struct UnsharedFile {
  int error = 0;
  int fd = -1;
  bool created = false;
};
UnsharedFile open_unshared(const char* path, int flags, unsigned mode) noexcept;

// slurp (slurp.cpp) reads the whole file at `path` as text, `most` bytes at most, into memory charged to `account`, or
// into the caller's. Errors: as for File; limit (it is longer); invalid with EILSEQ (it is not UTF-8).
[[nodiscard]] std::expected<FileBytes, Error> slurp(const char* path, Account& account, std::size_t most,
                                                    Deadline deadline = Deadline::never()) noexcept;
[[nodiscard]] std::expected<std::string_view, Error> slurp(const char* path, std::span<char> into,
                                                           Deadline deadline = Deadline::never()) noexcept;

// FileLines reads a file line by line from its start, through a buffer of the caller's whose size is the length of the
// longest line with its end.
//
//   char buffer[512];
//   FileLines lines(file, buffer);
//   while (auto line = lines.next()) show(*line);
class FileLines {
 public:
  // Both must outlive it.
  FileLines(const File& file, std::span<char> buffer) noexcept : file_(file), cutter_(buffer) {}

  // next returns the next line without its '\n', valid until the next call; the last one may lack it.
  // Errors: end_of_stream after the last; invalid for an empty buffer; limit for a line that does not fit, of which
  // nothing is returned and after which the next call goes on with the line that follows; File's.
  [[nodiscard]] std::expected<std::string_view, Error> next(Deadline deadline = Deadline::never()) noexcept;

 private:
  const File& file_;
  detail::LineCutter cutter_;
  std::uint64_t offset_ = 0;  // of what follows the buffered bytes
  bool ended_ = false;
};

}  // namespace coir
