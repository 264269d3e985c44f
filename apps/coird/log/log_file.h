#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

// LogFile is a file of whole lines that is replaced when it is full: FILE becomes FILE.1, FILE.1 becomes FILE.2 and so on, and
// the last one goes. A file that is renamed or removed by another program is opened anew under its name.
//
// Its calls block: they are for a thread of the pool.
class LogFile {
 public:
  LogFile() noexcept = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  // name says which file it is, how long it may become, and how many full ones are kept.
  void name(const char* path, std::uint64_t most_bytes, unsigned kept) noexcept;

  // open opens or creates the file, which has no other name. A last line without an end, of a run that was killed, is
  // removed. Returns 0, or errno.
  int open() noexcept;
  // give_to makes a user and a group the owners of a file that open has created.
  int give_to(uid_t user, gid_t group) const noexcept;

  // write adds lines, with their ends. Returns 0, or errno: then the file ends as before, with a whole line.
  int write(std::string_view lines) noexcept;

 private:
  int make_ready(std::size_t bytes) noexcept;
  int mend() noexcept;
  int rotate() noexcept;
  void close() noexcept;

  const char* path_ = nullptr;
  std::uint64_t most_ = 0;
  unsigned kept_ = 0;
  int fd_ = -1;
  bool created_ = false;
};
