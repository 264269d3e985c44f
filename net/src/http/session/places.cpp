// Session, of session.h: how a handler that waits gives its place among the active to others.
#include <coir/port/memory.h>

#include "base/rounded.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

// needs_buffers tells whether something lies in the buffers that the exchange goes on with. Chunked content that
// was read and is not delivered is there, too, and what has come of trailers.
bool Session::needs_buffers() const noexcept {
  return head_in_buffers_ || lends_scratch_ || lends_path_ || phase_ == Phase::head || out_used_ != 0 ||
         body_at_ != end_ || added_ != 0 || chunks_.has_trailers() || (chunks_.has_some() && !body_done_);
}

// Invariant: from the offer until the end of `reclaim` nobody reads or writes the buffers through this session. The
// owner and its children come to them by `hold` alone, which sees the offer; where children may be in the middle of a
// call now, the buffers stay. So whoever takes them needs not know whether the handler is parked, runs again on another
// worker, or is about to call `hold`: one of the two has the engine's lock first.
void Session::offer(bool shared) noexcept {
  if constexpr (kFibers) {
    if (releases_ && !shared) give_back_pages();
    engine_.offer(*this, shared || needs_buffers());
  }
}

void Session::reclaim() noexcept {
  if constexpr (kFibers) engine_.reclaim(*this);
}

// release_buffer gives all of the buffers back. If something lies in them, it offers the place: a handler may wait below a
// shield, where no wait does. The pages without anything follow once the handler waits: one that answers at once touches them
// again, and a fresh page costs more than all else that it does.
void Session::release_buffer() noexcept {
  if constexpr (kFibers) {
    hold();
    if (phase_ == Phase::head || !flush()) return;
    lends_scratch_ = false;
    const bool needs = needs_buffers();
    if (needs) engine_.offer(*this, true);
    releases_ = needs || !engine_.lend(*this);
  }
}

// give_back_pages frees the pages behind what has been read, unless the handler uses them again. The fields on the last
// page stay.
void Session::give_back_pages() noexcept {
  releases_ = false;
  if (lends_scratch_ || phase_ == Phase::head || out_used_ != 0) return;
  const auto up = [](const char* at) {
    return rounded(reinterpret_cast<std::uintptr_t>(at), std::uintptr_t{port::kPageBytes});
  };
  const std::uintptr_t begin = up(buffers->in + end_), end = up(buffers->added_fields) - port::kPageBytes;
  if (begin < end) static_cast<void>(port::give_back(reinterpret_cast<void*>(begin), end - begin));
}

}  // namespace coir::http
