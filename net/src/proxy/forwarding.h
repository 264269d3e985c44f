#pragma once

#include <coir/http/proxy.h>

#include "http/message/response_parser.h"
#include "http/session/session.h"
#include "proxy/field_kind.h"
#include "proxy/upstream.h"
#include "socket/buffer_pool.h"

namespace coir::http {

class ForwardKeeper;

// Forwarding is one exchange on its way to an upstream and back. It lies on the stack of the exchange's fiber.
//
// `room` holds the request's head as it is sent, then the response's head with content behind it and the records of the
// fields in its last quarter, then content. It is the session's scratch memory, and a buffer where that is too small:
//
//   | head | content that came along | free | fields |
//
// The parts: forwarder.cpp, what programs call; forwarding.cpp, how one is tried, retried and fails; request_fields.cpp and response_fields.cpp, heads as
// they are passed on; uploading.cpp, content to the upstream; receiving_head.cpp, what the upstream answers;
// relaying.cpp, content to the client.
struct Forwarding {
  using Outcome = std::expected<void, Error>;

  Forwarding(Exchange& given, ForwardKeeper& kept_by, UpstreamGroup& of, const ForwardRules& by,
             std::string_view target) noexcept;
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  void run() noexcept;
  Outcome try_once() noexcept;
  bool may_retry(Error error) const noexcept;
  void fail(Error error) noexcept;
  ForwardFailure failure_of(Error error) const noexcept;
  void note(ForwardFailure failure) noexcept;
  void answer(int status) noexcept;
  // grow makes `room` a buffer of that size, with the first `used` bytes of what it was.
  Outcome grow(std::size_t bytes, std::size_t used) noexcept;

  // request_fields.cpp: refusal is the status of a request that is not passed on, 0 where there is none.
  int refusal() noexcept;
  bool loops() const noexcept;
  std::string_view write_request_head(std::span<char> into) noexcept;
  void write_forwarded(ResponseHead& head) noexcept;
  std::string_view client_name(std::span<char> text) noexcept;
  void choose_request_id() noexcept;
  std::string_view pseudonym() const noexcept;

  // uploading.cpp: send sends the request, until all of it is sent or a final response has come.
  Outcome send() noexcept;
  Outcome send_head() noexcept;
  Outcome send_all(std::string_view bytes) noexcept;
  Outcome await_leave() noexcept;
  Outcome upload() noexcept;
  Outcome upload_trailers() noexcept;
  Outcome hear() noexcept;

  // receiving_head.cpp: read_head returns when a final head is there, or one that switches protocols.
  Outcome read_head(Deadline deadline) noexcept;
  std::expected<bool, Error> took_head() noexcept;
  Outcome read_more(Deadline deadline) noexcept;

  // response_fields.cpp
  void pass_interim() noexcept;
  void add_fields(ResponseHead& head) noexcept;
  bool begin_response() noexcept;

  // relaying.cpp
  void pass_response() noexcept;
  void relay() noexcept;
  bool read_content(Buffer& bulk) noexcept;
  bool pass_content(std::span<char> bytes) noexcept;
  void pass_trailers() noexcept;
  void cut(UpstreamFault fault) noexcept;
  void leave() noexcept;
  bool keep() noexcept;
  void begin_tunnel() noexcept;

  // within is a deadline by a time that has been read already.
  Deadline within(std::chrono::milliseconds span) const noexcept {
    return Deadline::at_ns(now_ns + std::chrono::nanoseconds(span).count());
  }
  std::span<char> heads() const noexcept { return room.first(room.size() / 4 * 3); }
  Stream& upstream() const noexcept { return lease.stream(); }
  bool is_event_stream() const noexcept;

  Exchange& exchange;
  Session& session;
  ForwardKeeper& keeper;
  UpstreamGroup& group;
  const ForwardRules& rules;
  const Request& request;
  std::string_view target;

  UpstreamLease lease;
  Buffer larger;
  std::span<char> room;
  ParsedResponse response;
  ChunkedDecoder decoder;
  std::int64_t now_ns = 0;  // when this try began, or its content was sent
  std::uint64_t left = 0;   // of content with a length
  std::uint32_t have = 0;   // bytes of a response in `room`
  std::uint32_t seen = 0;   // of these, parsed before
  std::uint32_t begin = 0;  // where content behind the head begins
  std::uint16_t interim = 0;
  bool names_fields = false;  // a Connection field of the request names others
  bool asks_upgrade = false;  // the request asks for a tunnel
  bool takes_trailers = false;
  bool unrepeatable = false;   // content has been read that cannot be read again
  bool sent_any = false;       // of this request on this connection
  bool sent_whole = false;     // all of the request
  bool heard_any = false;      // of a response
  bool hung_up = false;        // reading from the upstream has failed
  bool got_head = false;       // `response` is a final one
  bool got_leave = false;      // the upstream has said 100
  bool ended = false;          // the content of the response has come whole
  bool strays = false;         // with bytes behind it
  bool rests_at_once = false;  // the response is an event stream
};

}  // namespace coir::http
