// coirctl trace. Declared in control.h.
#include <coir/error.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "asking.h"
#include "fetch_options.h"

int save_trace(const ControlOptions& options) noexcept {
  Asking asking(options);
  if (options.output == nullptr && ::isatty(STDOUT_FILENO) == 1)
    return refuse("trace", "it is not for a terminal: name its file by -o FILE"), 2;
  if (const int status = asking.begin("trace json"); status != kHasDone) return status;
  int to = STDOUT_FILENO;
  if (options.output != nullptr) to = ::open(options.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (to < 0) return say_error(options.output, describe(coir::Error::from_errno(errno))), kRefused;
  char last = '\0';
  for (;;) {
    std::string_view part;
    if (const int status = asking.next(part); status != kHasDone) return status;
    if (part.empty()) break;
    for (std::string_view left = part; !left.empty();) {
      const ssize_t written = ::write(to, left.data(), left.size());
      if (written < 0) {
        say_error(options.output != nullptr ? options.output : "standard output",
                  describe(coir::Error::from_errno(errno)));
        return kRefused;
      }
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    last = part.back();
  }
  // Its last byte is the end of its last line.
  if (last == '\n') return kHasDone;
  return asking.fail(kRefused, last == '\0' ? "coird has no trace: there was no memory for its rings (COIR_TRACE_KB)"
                                            : "the trace breaks off; try again");
}
