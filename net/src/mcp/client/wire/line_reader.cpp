#include "mcp/client/wire/line_reader.h"

#include <coir/errno.h>
#include <string.h>
#include <unistd.h>

#include <utility>

namespace coir::mcp::detail {

std::expected<void, Error> LineReader::fill(int fd) noexcept {
  if (begin_ == end_) {
    begin_ = end_ = searched_ = 0;
    if (buffer_.size() > Buffer::kLeast) buffer_.give();
  } else if (begin_ != 0) {
    memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (!buffer_) {
    auto taken = Buffer::take(Buffer::kLeast);
    if (!taken) return std::unexpected(taken.error());
    buffer_ = std::move(*taken);
  }
  if (end_ == buffer_.size()) {
    if (end_ > most_ || end_ == Buffer::kMost) {
      if (!skipping_) ++too_long_;
      skipping_ = true;
      end_ = searched_ = 0;
    } else if (auto grown = buffer_.grow(end_); !grown) {
      return grown;
    }
  }
  for (;;) {
    const ssize_t got = ::read(fd, buffer_.data() + end_, buffer_.size() - end_);
    if (got > 0) {
      end_ += static_cast<std::size_t>(got);
      return {};
    }
    if (got == 0) return std::unexpected(Error{ErrorCode::end_of_stream});
    if (errno == EINTR) continue;
    const int number = errno;
    if (begin_ == end_ && !skipping_) buffer_.give();  // what rests holds none
    if (number == EAGAIN) return std::unexpected(Error{ErrorCode::timed_out});
    return std::unexpected(Error::from_errno(number));
  }
}

std::optional<std::string_view> LineReader::next() noexcept {
  for (;;) {
    const std::string_view have(buffer_.data() + begin_, end_ - begin_);
    const std::size_t at = have.find('\n', searched_);
    if (at == have.npos) {
      searched_ = have.size();
      if (skipping_) begin_ = end_ = searched_ = 0;
      return std::nullopt;
    }
    begin_ += at + 1;
    searched_ = 0;
    if (std::exchange(skipping_, false)) continue;
    std::string_view line = have.substr(0, at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() <= most_) return line;
    ++too_long_;
  }
}

}  // namespace coir::mcp::detail
