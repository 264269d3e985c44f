#pragma once

#include <utility>

#include <coir/cancel_scope.h>

namespace coir {

// timeout runs `body` as with_timeout does, and returns its outcome only if that came in time: one that comes later is
// dropped, whatever it is, for `timed_out`. An error whose `scope` is 0 is of this deadline or the body's own.
//
//   auto answer = timeout(2s, [&] { return ask(server); });
template <class F>
[[nodiscard]] detail::OutcomeOf<F> timeout(std::chrono::nanoseconds span, F&& body) {
  CancelScope scope(Deadline::after(span));
  detail::OutcomeOf<F> outcome = detail::outcome_of(body);
  if (auto ended = scope.ended(); !ended) outcome = std::unexpected(ended.error());
  if (!outcome && scope.caused(outcome.error())) outcome.error().scope = 0;
  return outcome;
}

}  // namespace coir
