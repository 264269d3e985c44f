#include "outbound/relayed_exchange.h"

#include <coir/format.h>

namespace coir::http {
namespace {

// The status of a client that has left, in the log: it hears nothing.
constexpr int kClientGone = 499;

}  // namespace

std::expected<bool, Error> RelayedExchange::await_piece(OutboundRequest& onward, Deadline patience) noexcept {
  Stream& stream = onward.stream();
  for (;;) {
    // Bytes of the peer that arrived before and were not read cause no new event: no wait reports them.
    const auto there = session.await_content(stream.fd(), stream.drained(), patience);
    // The wait may have taken the news of both.
    stream.mark_readable();
    if (!there || *there) return there;
    const auto heard = onward.hear();
    if (!heard) return heard;
    if (*heard) return false;
  }
}

std::expected<std::size_t, Error> RelayedExchange::read_piece(std::span<char> into) noexcept {
  session.only_looks_ = true;
  const auto got = exchange.read_body(into);
  session.only_looks_ = false;
  return got;
}

bool RelayedExchange::refuses_method() noexcept {
  if (request.method != Method::trace) return false;
  exchange.respond_status(405, "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n");
  return true;
}

void RelayedExchange::answer(int status, std::chrono::seconds retry_after) noexcept {
  if (status != 503) return exchange.respond_status(status);
  char line[48];
  exchange.respond_status(503, format(line, "Retry-After: ", retry_after.count(), "\r\n"));
}

void RelayedExchange::answer_gone_client() noexcept {
  if (client_failed()) return;
  exchange.close_after();
  exchange.respond_status(kClientGone);
}

}  // namespace coir::http
