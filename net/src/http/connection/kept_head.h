#pragma once

#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

// KeptHead is where the head of a request lies while its handler runs, if it is short: beside the session instead of in
// its buffers, so that these can be given to others while the handler waits. A view of the request stays valid
// all the time, also for the handler's children and other fibers.
class KeptHead {
 public:
  // A head with 8 fields fits if it has at most 350 bytes.
  static constexpr std::size_t kBytes = 608;

  // A head that comes in one piece of at most so many bytes is parsed here, so that nothing is moved: take copies the
  // piece, and settle has `request`, whose head is its first `head_bytes`, kept with its fields. False: they do not fit.
  static constexpr std::size_t kPieceBytes = kBytes - 8 * sizeof(Header);
  std::string_view take(std::string_view piece) noexcept;
  bool settle(Request& request, std::size_t head_bytes) noexcept;
  // keep moves `request`, whose head is `head`, here. False: it is too long, and stays where it is.
  bool keep(Request& request, std::string_view head) noexcept;
  // text is the head that was kept last.
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
  alignas(Header) char memory_[kBytes];
};

}  // namespace coir::http
