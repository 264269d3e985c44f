// How a transfer follows redirects. Declared in client/transfer.h.
#include <coir/cancel_scope.h>

#include "client/transfer.h"

namespace coir::http::detail {
namespace {

// A 3xx has a line of HTML, if anything. With more, or if that takes longer, the connection is closed: a new one costs less.
constexpr std::uint64_t kMostDrained = 16 * 1024;
constexpr std::chrono::seconds kLongestDrain{1};

}  // namespace

// RFC 9110, 10.1.1: a client that gets 417 repeats the request without Expect.
bool Transfer::leaves_out_expect() noexcept {
  if (response.status != 417 || !waits_for_leave() || !rewind_content()) return false;
  drain();
  without_expect = true;
  return true;
}

std::expected<bool, Error> Transfer::follow() noexcept {
  const int status = response.status;
  const bool redirects_here = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  if (!redirects_here || request->max_redirects == 0) return false;
  const std::string_view location = response.header("Location");
  // An empty one leads here again.
  if (location.empty()) return false;
  if (++redirects > request->max_redirects) {
    return std::unexpected(client_error(ErrorCode::limit, ClientFault::too_many_redirects));
  }
  auto next = Buffer::take(Buffer::kLeast);
  if (!next) return std::unexpected(next.error());
  const auto resolved = resolve_url(url, location, next->bytes());
  if (!resolved) return std::unexpected(client_error(ErrorCode::protocol, ClientFault::bad_location));
  const auto target = parse_url(*resolved);
  if (!target) return std::unexpected(client_error(ErrorCode::protocol, ClientFault::bad_location));
  if (url.secure && !target->secure) {
    return std::unexpected(client_error(ErrorCode::protocol, ClientFault::insecure_redirect));
  }
  // 301 and 302 turn POST into GET, as browsers do; 303 all but HEAD (RFC 9110, 15.4).
  if (status == 303 ? method != "HEAD" : (status == 301 || status == 302) && method == "POST") {
    method = "GET";
    with_content = false;
  } else if (has_content() && !rewind_content()) {
    return std::unexpected(client_error(ErrorCode::protocol, ClientFault::cannot_repeat));
  }
  // For good: a later hop back gets no secret either.
  if (!same_origin(url, *target)) drops_secrets = true;
  drain();
  url_text = *resolved;
  redirected = std::move(*next);
  fresh = false;
  return true;
}

// drain reads a short content to its end, so that the connection serves again.
void Transfer::drain() noexcept {
  // It bounds all reads together: each alone may wait for Timeouts::between_bytes.
  const CancelScope scope(Deadline::after(kLongestDrain));
  char dropped[256];
  for (std::uint64_t read = 0; !done && read < kMostDrained;) {
    const auto got = reusable ? read_plain(dropped) : std::unexpected(Error{ErrorCode::closed});
    if (!got) break;
    read += *got;
  }
  if (!done) reusable = false;
  let_go();
}

}  // namespace coir::http::detail
