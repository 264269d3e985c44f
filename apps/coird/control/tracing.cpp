// How Control sends a trace. Declared in control/control.h.
#include "control.h"

#if !COIR_NO_ASYNC

#include <coir/blocking.h>
#include <coir/descriptor_stream.h>
#include <coir/stack_size.h>
#include <coir/trace.h>
#include <fcntl.h>
#include <unistd.h>

using namespace std::chrono_literals;
using coir::operator""_KiB;

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
  coir::Fiber writer = coir::spawn({.name = "control", .stack = 16_KiB}, [to = ends[1]] {
    static_cast<void>(coir::blocking([to] { return coir::write_trace(to).has_value(); }));
    ::close(to);
  });
  if (!writer.started()) ::close(ends[1]);
  char part[2048];
  while (const auto size = from->read(part)) {
    if (!client.write({part, *size}, coir::Deadline::after(5s))) break;
  }
  from->close();
  if (writer.started()) static_cast<void>(writer.join());
}

#endif
