#pragma once

#include <coir/http/exchange.h>

#include "http/session/session.h"
#include "outbound/exchange.h"

namespace coir::http {

// kBeforeRest: most waits for one of the two sides are over so soon that resting does not pay.
inline constexpr std::chrono::milliseconds kBeforeRest{20};

// RelayedExchange is the client's side of an exchange that another server answers.
struct RelayedExchange {
  explicit RelayedExchange(Exchange& given) noexcept
      : exchange(given), session(Session::of(given)), request(given.request()) {}

  // await_piece waits for more content of the request, and has `onward` hear its peer meanwhile. True: reading tells
  // what there is. False: the peer wants no more. Errors: those of Session::await_content and of hear.
  std::expected<bool, Error> await_piece(OutboundRequest& onward, Deadline patience = Deadline::never()) noexcept;

  // read_piece reads content that await_piece has told of. Errors: as Exchange::read_body; timed_out where it was half a record
  // of TLS: await_piece waits for the rest, beside the peer.
  std::expected<std::size_t, Error> read_piece(std::span<char> into) noexcept;

  // client_failed tells whether the client has left, or what it sends is wrong.
  bool client_failed() const noexcept { return session.broken_ || session.fault_ != 0; }

  // refuses_method answers a TRACE, which would show a page the credentials that its fields hold.
  bool refuses_method() noexcept;

  // answer answers for a server that has not, and says with 503 when to try again. answer_gone_client has the access log
  // say that the client had left.
  void answer(int status, std::chrono::seconds retry_after) noexcept;
  void answer_gone_client() noexcept;

  Exchange& exchange;
  Session& session;
  const Request& request;
};

}  // namespace coir::http
