#pragma once

#include <coir/deadline.h>
#include <coir/http/exchange.h>
#include <errno.h>

#include <span>
#include <utility>

namespace coir::http {

// OpenFile closes its descriptor. Reads of files never wait on it, so that plain close serves.
class OpenFile {
 public:
  explicit OpenFile(int fd = -1) noexcept : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { reset(-1); }
  void reset(int fd) noexcept;
  // release hands the descriptor over to the caller.
  int release() noexcept { return std::exchange(fd_, -1); }
  // fd is negative where there is none: the -errno that the object was made of.
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

// status_of is the status that answers -errno of opening a file.
int status_of(int negative_errno) noexcept;

// await_descriptor closes an idle connection. If none is idle, it waits for a moment, until `late`: handlers that have lent
// their places to others keep their files meanwhile, and one of them is done soon. False: there is no descriptor.
bool await_descriptor(Exchange& exchange, Deadline late) noexcept;

// with_room calls `open`, which returns -errno where it fails, and again where descriptors are short, for up to 2 s.
template <class Open>
int with_room(Exchange& exchange, Open open) noexcept {
  for (Deadline late = Deadline::never();;) {
    const int opened = open();
    if (opened != -EMFILE && opened != -ENFILE) return opened;
    if (late.is_never()) late = Deadline::after(std::chrono::seconds(2));
    if (!await_descriptor(exchange, late)) return opened;
  }
}

// open_with_room is open_beneath (coir/port/beneath.h) with room.
int open_with_room(Exchange& exchange, int root, const char* relative, std::span<char> work) noexcept;

}  // namespace coir::http
