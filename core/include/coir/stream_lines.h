#pragma once

// Lines of a stream, in memory of the caller's.
//
//   auto input = DescriptorStream::share(STDIN_FILENO);
//   if (!input) return complain(input.error());
//   StreamLines lines(*input, buffer);
//   while (auto line = lines.next(Deadline::after(30s))) show(*line);

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

#include <coir/deadline.h>
#include <coir/detail/line_cutter.h>
#include <coir/error.h>

namespace coir {

// StreamLines reads a stream line by line, through a buffer of the caller's whose size is the length of the longest
// line with its end. The stream is a TcpStream, a Stream, a DescriptorStream, or anything that reads as they do.
//
// A fiber that waits for other things besides takes all lines that are there before it waits:
//
//   for (;;) {
//     auto line = lines.next(Deadline::now());
//     if (line) obey(*line);
//     else if (line.error() != ErrorCode::timed_out) return;
//     else if (!select({Case::readable(client.fd()), Case::receive(news, item)})) return;
//   }
//
// The buffer holds bytes that were read and not returned yet: read a stream by one StreamLines as long as lines are
// wanted. Nothing is allocated; one read for all lines that arrive together.
template <class S>
class StreamLines {
 public:
  // Both must outlive it.
  StreamLines(S& stream, std::span<char> buffer) noexcept : stream_(stream), cutter_(buffer) {}

  // next waits for the next line and returns it without its '\n', and without a '\r' before that, valid until the next
  // call; the last one may lack its end. With Deadline::now() it returns a line if one is there, else timed_out.
  // Errors: end_of_stream after the last; invalid for an empty buffer; limit for a line that does not fit, of which
  // nothing is returned and after which the next call goes on with the line that follows; the stream's. After timed_out
  // and cancelled the next call goes on where this one was.
  [[nodiscard]] std::expected<std::string_view, Error> next(Deadline deadline = Deadline::never()) noexcept {
    for (;;) {
      if (auto line = cutter_.next(ended_)) {
        if (*line && (*line)->ends_with('\r')) (*line)->remove_suffix(1);
        return *line;
      }
      const auto got = stream_.read(cutter_.room(), deadline);
      if (got) {
        cutter_.add(*got);
      } else if (got.error() == ErrorCode::end_of_stream) {
        ended_ = true;
      } else {
        return std::unexpected(got.error());
      }
    }
  }

 private:
  S& stream_;
  detail::LineCutter cutter_;
  bool ended_ = false;
};

}  // namespace coir
