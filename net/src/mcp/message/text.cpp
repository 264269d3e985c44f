#include "mcp/message/text.h"

#include <coir/mcp.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace coir {

namespace account {
constinit Account mcp("mcp");
}

namespace mcp {

Text::~Text() {
  if (!owned_) return;
  free(memory_);
  account::mcp.refund(size_);
}

std::expected<void, Error> Text::write(std::string_view text) noexcept {
  if (char* const to = take(text.size()); to != nullptr && !text.empty()) memcpy(to, text.data(), text.size());
  if (failed()) return std::unexpected(failure_);
  return {};
}

char* Text::take(std::size_t bytes) noexcept {
  if (failed()) return nullptr;
  if (bytes > size_ - used_ && (bytes > SIZE_MAX / 2 - used_ || !grow(used_ + bytes))) return nullptr;
  char* const at = memory_ + used_;
  used_ += bytes;
  return at;
}

// grow doubles, so that a long text is copied twice at most.
bool Text::grow(std::size_t needed) noexcept {
  if (needed > most_) {
    failure_ = Error{ErrorCode::limit};
    return false;
  }
  const std::size_t wanted = std::min(std::max(needed, size_ * 2), most_);
  if (!Pressure::charge(account::mcp, wanted)) {
    failure_ = Error{ErrorCode::no_memory};
    return false;
  }
  auto* const grown = static_cast<char*>(malloc(wanted));
  if (grown == nullptr) {
    account::mcp.refund(wanted);
    failure_ = Error{ErrorCode::no_memory};
    return false;
  }
  if (used_ > 0) memcpy(grown, memory_, used_);
  if (owned_) {
    free(memory_);
    account::mcp.refund(size_);
  }
  memory_ = grown;
  size_ = wanted;
  owned_ = true;
  return true;
}

}  // namespace mcp
}  // namespace coir
