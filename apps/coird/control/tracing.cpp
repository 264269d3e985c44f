// How Control sends a trace. Declared in control/control.h.
#include "control.h"

#if !COIR_NO_ASYNC

#include <coir/blocking.h>
#include <coir/cancel_scope.h>
#include <coir/descriptor_stream.h>
#include <coir/stack_size.h>
#include <coir/trace.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

using namespace std::chrono_literals;
using coir::operator""_KiB;

namespace {

// PipeEnd closes its descriptor where nobody writes to it any more: a call that is given up on goes on.
struct PipeEnd {
  explicit PipeEnd(int of) noexcept : fd(of) {}
  PipeEnd(PipeEnd&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  ~PipeEnd() {
    if (fd >= 0) ::close(fd);
  }

  int fd;
};

}  // namespace

// The trace is written without pause and its client may pause, so that it goes through a pipe: a thread of the pool writes to
// it until all of it is sent, or the pipe is closed because the client has left.
void Control::send_trace(coir::TcpStream& client) noexcept {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  auto from = coir::DescriptorStream::adopt(ends[0]);
  if (!from) {
    ::close(ends[0]);
    ::close(ends[1]);
    return;
  }
  bool written = false;
  coir::Fiber writer = coir::spawn({.name = "control", .stack = 16_KiB}, [&written, to = PipeEnd(ends[1])]() mutable {
    written = coir::blocking([to = std::move(to)] { return coir::write_trace(to.fd).has_value(); }).value_or(false);
  });
  char part[512];
  std::uint64_t sent = 0;
  const coir::Deadline deadline = coir::Deadline::after(30s);  // nobody else is answered meanwhile
  while (const auto size = from->read(part)) {
    if (!client.write({part, *size}, deadline)) break;
    sent += *size;
  }
  from->close();
  if (!writer.started()) return;
  {
    // It writes to this frame; its pipe is closed, so that it ends soon.
    const coir::Shield shield(coir::Deadline::never());
    static_cast<void>(writer.join());
  }
  // A client that has gone, or a trace that broke off, has no end.
  if (written) static_cast<void>(client.write(coir::format(part, '\0', sent, "\n"), deadline));
}

#endif
