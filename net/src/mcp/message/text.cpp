#include "mcp/message/text.h"

#include <coir/mcp/detail/account.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace coir {

namespace account {
constinit Account mcp("mcp");
}

namespace mcp {

namespace {
constexpr std::size_t kLeast = 512;
}  // namespace

Text::~Text() {
  if (!owned_) return;
  free(memory_);
  account::mcp.refund(size_);
}

std::expected<void, Error> Text::write(std::string_view text) noexcept {
  if (char* const to = take(text.size()); to != nullptr && !text.empty()) memcpy(to, text.data(), text.size());
  if (failed()) return std::unexpected(failure());
  return {};
}

char* Text::take(std::size_t bytes) noexcept {
  if (failed()) return nullptr;
  if (bytes > size_ - used_ && (bytes > SIZE_MAX / 2 - used_ || !grow(used_ + bytes))) return nullptr;
  char* const at = memory_ + used_;
  used_ += static_cast<Size>(bytes);
  return at;
}

// grow doubles, so that a long text is copied twice at most, and begins with room for a short answer. At a ceiling it takes
// no more than is needed.
bool Text::grow(std::size_t needed) noexcept {
  if (needed > most_) {
    failure_ = ErrorCode::limit;
    return false;
  }
  std::size_t wanted = std::min<std::size_t>(std::max({needed, std::size_t{size_} * 2, kLeast}), most_);
  if (!Pressure::charge(account::mcp, wanted)) {
    wanted = needed;
    if (!Pressure::charge(account::mcp, wanted)) {
      failure_ = ErrorCode::no_memory;
      return false;
    }
  }
  auto* const grown = static_cast<char*>(malloc(wanted));
  if (grown == nullptr) {
    account::mcp.refund(wanted);
    failure_ = ErrorCode::no_memory;
    return false;
  }
  if (used_ > 0) memcpy(grown, memory_, used_);
  if (owned_) {
    free(memory_);
    account::mcp.refund(size_);
  }
  memory_ = grown;
  size_ = static_cast<Size>(wanted);
  owned_ = true;
  return true;
}

}  // namespace mcp
}  // namespace coir
