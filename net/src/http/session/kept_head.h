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
  // Of 8 fields, 350 bytes fit.
  static constexpr std::size_t kBytes = 608;

  // keep moves `request`, whose head is `head`, here. False: it is too long, and stays where it is.
  bool keep(Request& request, std::string_view head) noexcept;
  // text is the head that was kept last.
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
  alignas(Header) char memory_[kBytes];
};

}  // namespace coir::http
