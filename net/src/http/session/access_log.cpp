#include <coir/net/log_line.h>
#include <string.h>

#include <algorithm>

#include "http/session/connection.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {
namespace {

// Line is filled until it is full; what does not fit is left out.
class Line {
 public:
  explicit Line(std::span<char> memory) noexcept : memory_(memory) {}
  // Whatever could forge a line or move the reader's cursor is written as '?'.
  void add(std::string_view text) noexcept {
    for (char c : text) {
      if (used_ == memory_.size()) return;
      memory_[used_++] = c < ' ' || c == '\x7f' ? '?' : c;
    }
  }
  void add(std::uint64_t number) noexcept {
    char digits[20];
    add(std::string_view(digits, write_decimal(digits, number)));
  }
  std::string_view end() noexcept {
    used_ = std::min(used_, memory_.size() - 1);
    memory_[used_++] = '\n';
    return {memory_.data(), used_};
  }

 private:
  std::span<char> memory_;
  std::size_t used_ = 0;
};

}  // namespace

// log_access writes "PEER METHOD TARGET STATUS BYTES". Nobody waits for the reader of the log.
void Session::log_access() noexcept {
  Line line(std::span(scratch_).first(1024));
  char peer_text[Address::kMaxText];
  const auto peer = connection_->stream.tcp().peer_address();
  const std::string_view peer_name = peer ? peer->format(peer_text) : std::string_view();
  line.add(peer_name.empty() ? "-" : peer_name);
  line.add(" ");
  line.add(request_.method_text.empty() ? "-" : request_.method_text);
  line.add(" ");
  line.add(request_.target.empty() ? "-" : request_.target.substr(0, 800));
  line.add(" ");
  line.add(std::uint64_t{status_});
  line.add(" ");
  line.add(content_sent_);
  log_line(line.end());
}

}  // namespace coir::http
