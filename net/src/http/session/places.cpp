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
    if (!shared && releases_) give_back_pages();
    engine_.offer(*this, shared || needs_buffers());
  }
}

// A child offers the place again at once: its handler is in the wait that has offered it, and offers nothing before its next
// one. So a child waits in line before a call, and others may take the place during the call: the buffers stay (`shared`). It
// makes no difference what the others do meanwhile:
//
//   the owner goes on    the program has its use of the exchange follow the child's: `hold` sees the child's offer
//   it waits again       its offer changes the child's only by keeps_buffers, which it lowers where no child lives
//   it begins to wait    about_to_wait finds `runs`, or offers beside the call: under the engine's lock before this
//                        reclaim, which ends that offer, or behind it, where it finds the offer or makes it
//   the handler ends     behind its children
//   a hang-up, the stop  mark and wake the owner and its children, but not who is in line: that wait is shielded
//   Detached::from       the dispatcher takes an offered place back as well
void Session::reclaim() noexcept {
  if constexpr (kFibers) {
    engine_.reclaim(*this);
    if (!watch_->is_owners()) offer(true);
  }
}

// release_buffer gives all of the buffers back. If something lies in them, it offers the place: a handler may wait below a
// shield, where no wait does. The pages without anything follow once the handler waits: one that answers at once touches them
// again, and a fresh page costs more than all else that it does.
void Session::release_buffer() noexcept {
  if constexpr (kFibers) {
    hold();
    if (phase_ == Phase::head || !flush()) return;
    lends_scratch_ = false;
    // A child may have offered the place in `hold`.
    const bool keeps = needs_buffers() || !watch_->is_owners();
    if (keeps) engine_.offer(*this, true);
    releases_ = keeps || !engine_.lend(*this);
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
