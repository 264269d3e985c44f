// coirctl trace. Declared in control.h.
#include <coir/error.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "asking.h"
#include "fetch_options.h"

namespace {

// TraceEnd takes apart what coird sends: the trace, which has no NUL, then a NUL and the number of the trace's bytes. That comes
// only behind a whole trace.
class TraceEnd {
 public:
  // take returns what of a part belongs to the trace.
  std::string_view take(std::string_view part) noexcept {
    const std::size_t nul = filled_ == 0 ? part.find('\0') : 0;
    const std::string_view trace = part.substr(0, nul);
    part.remove_prefix(trace.size());
    filled_ += part.copy(text_ + filled_, sizeof text_ - filled_);
    return trace;
  }
  // size is the number of the trace's bytes, of a whole one.
  std::optional<std::uint64_t> size() const noexcept {
    std::uint64_t number = 0;
    if (filled_ < 2) return std::nullopt;
    const auto [end, error] = std::from_chars(text_ + 1, text_ + filled_, number);
    if (error != std::errc() || end == text_ + filled_ || *end != '\n') return std::nullopt;
    return number;
  }

 private:
  char text_[24] = {};  // from the NUL on
  std::size_t filled_ = 0;
};

}  // namespace

int save_trace(const ControlOptions& options) noexcept {
  Asking asking(options);
  if (options.output == nullptr && ::isatty(STDOUT_FILENO) == 1)
    return refuse("trace", "it is not for a terminal: name its file by -o FILE"), 2;
  if (const int status = asking.begin("trace json"); status != kHasDone) return status;
  int to = STDOUT_FILENO;
  if (options.output != nullptr) to = ::open(options.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (to < 0) return say_error(options.output, describe(coir::Error::from_errno(errno))), kRefused;
  std::uint64_t size = 0;
  TraceEnd end;
  for (;;) {
    std::string_view part;
    if (const int status = asking.next(part); status != kHasDone) return status;
    if (part.empty()) break;
    for (std::string_view left = end.take(part); !left.empty();) {
      const ssize_t written = ::write(to, left.data(), left.size());
      if (written < 0) {
        say_error(options.output != nullptr ? options.output : "standard output",
                  describe(coir::Error::from_errno(errno)));
        return kRefused;
      }
      left.remove_prefix(static_cast<std::size_t>(written));
      size += static_cast<std::uint64_t>(written);
    }
  }
  if (size != 0 && end.size() == size) return kHasDone;
  return asking.fail(kRefused, size == 0 ? "coird has no trace: there was no memory for its rings (COIR_TRACE_KB)"
                                         : "the trace breaks off; try again");
}
