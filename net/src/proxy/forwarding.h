#pragma once

#include <algorithm>

#include "outbound/exchange.h"
#include "outbound/relayed_exchange.h"
#include "proxy/field_kind.h"
#include "proxy/forwarder.h"
#include "proxy/relayed_content.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {

class ForwardKeeper;
struct WaitingExchange;

// kBeforeRestAnew: one that was woken for nothing may be again.
inline constexpr std::chrono::milliseconds kBeforeRestAnew{500};
// kInDoubt: a peer that has not acknowledged its request is looked at within that time. kUntilAcknowledged: most have by then.
inline constexpr std::chrono::milliseconds kInDoubt{1'500}, kUntilAcknowledged{100};

// Forwarding is one exchange on its way to an upstream and back. It lies on the stack of the exchange's fiber.
//
// OutboundExchange's memory is the session's scratch memory, and a buffer where that is too small.
//
// The parts: forwarder.cpp, what programs call; forwarding.cpp, how one is tried, retried and fails; request_fields.cpp and
// response_fields.cpp, heads as they are passed on; upload.cpp, content to the upstream; download.cpp, content to the client.
struct Forwarding final : OutboundExchange, RelayedExchange {
  Forwarding(Exchange& given, ForwardKeeper& kept_by, UpstreamGroup& of, const ForwardRules& by,
             const RequestRules& its_own) noexcept;

  ~Forwarding() { end_waiting(); }

  void run() noexcept;
  // resume goes on where the exchange was kept.
  void resume(WaitingExchange& waiting) noexcept;
  // Stage is what comes next.
  enum class Stage : std::uint8_t { ask, upload, answer };
  void go_on(Stage stage) noexcept;
  Outcome ask() noexcept;
  void begin_try(std::uint8_t interims = 0) noexcept;
  void limit_content() noexcept;
  bool may_be_kept(Deadline late) const noexcept;
  bool suspend() noexcept;
  bool suspend_upload() noexcept;
  bool begin_waiting() noexcept;
  void end_waiting() noexcept;
  Outcome try_once() noexcept;
  Outcome answered(Outcome sent) noexcept;
  Outcome await_answer() noexcept;
  bool may_retry(Error error) const noexcept;
  void fail(Error error) noexcept;
  void note(ForwardFailure failure) noexcept;
  void answer(int status) noexcept { RelayedExchange::answer(status, rules.retry_after); }

  // request_fields.cpp: refusal is the status of a request that is not passed on, 0 where there is none.
  int refusal() noexcept;
  bool loops() const noexcept;
  std::string_view write_request_head(std::span<char> into) noexcept;
  void write_forwarded(ResponseHead& head) noexcept;
  std::string_view client_name(std::span<char> text) noexcept;
  void choose_request_id() noexcept;
  std::string_view pseudonym() const noexcept;

  // upload.cpp: send sends the request, until all of it is sent or a final response has come.
  Outcome send() noexcept;
  Outcome send_head() noexcept;
  Outcome upload() noexcept;
  Outcome end_upload() noexcept;
  Outcome upload_trailers(std::span<char> place) noexcept;

  // response_fields.cpp
  void heard_interim() noexcept override;
  void add_fields(ResponseHead& head, bool may_part = false) noexcept;
  void add_in_parts(ResponseHead& head, const Header& field) noexcept;
  bool begin_response() noexcept;

  // download.cpp
  void pass_response() noexcept;
  void relay() noexcept;
  bool read_content(Buffer& bulk) noexcept;
  bool may_peek() const noexcept;
  std::expected<std::size_t, Error> look(std::span<char> into, Deadline until) noexcept;
  bool pass_content(std::span<char> bytes) noexcept;
  bool pass_read(std::span<char> bytes, std::size_t found) noexcept;
  bool pass_peeked(const RelayedContent& seen, std::span<char> bytes, std::size_t found) noexcept;
  bool pass_output() noexcept;
  bool send_or_keep(std::span<iovec> parts, std::size_t behind) noexcept;
  void pass_trailers() noexcept;
  void cut(ForwardFailure failure) noexcept;
  void leave() noexcept;
  bool keep() noexcept;
  void begin_tunnel() noexcept;

  // within is a deadline by a time that has been read already.
  Deadline within(std::chrono::milliseconds span) const noexcept {
    return Deadline::at_ns(now_ns + std::chrono::nanoseconds(span).count());
  }
  bool is_event_stream() const noexcept;
  // keeps_unsent: what the client does not take of the content is kept, as it cannot stay in the upstream's socket.
  bool keeps_unsent() const noexcept {
    return lease.stream().secure() || (takes_trailers && relayed.end == ContentEnd::chunked);
  }
  // before_rest is a patience of the session's, of which 0 has no end.
  std::chrono::milliseconds before_rest() const noexcept {
    return std::clamp(rules.rest_after, std::chrono::milliseconds(1), kBeforeRest);
  }
  // trailers is where those of a response are kept.
  std::span<char> trailers() const noexcept { return room.last(room.size() / 4); }

  ForwardKeeper& keeper;
  UpstreamGroup& group;
  const ForwardRules& rules;
  const RequestRules& own;

  UpstreamLease lease;
  RelayedContent relayed;                    // how its content comes
  Atomic<std::uint32_t>* counted = nullptr;  // ForwardRules::waiting, while this exchange counts
  std::int64_t now_ns = 0;                   // when this try began, or its content was sent
  bool tried_again = false;
  bool resumed = false;       // it was kept with its whole request sent, and no interim response has come since
  bool was_slow = false;      // it has rested because its client sent nothing
  bool suspended = false;     // it is kept, and goes on elsewhere
  bool names_fields = false;  // a Connection field of the request names others
  bool takes_trailers = false;
  bool peeked = false;         // the content that was read last is in the upstream's socket still
  bool sent_part = false;      // the client has been sent a part of the head
  bool rests_at_once = false;  // the response is an event stream
};

}  // namespace coir::http
