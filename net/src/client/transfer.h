#pragma once

#include <coir/http/url.h>
#include <coir/net/resolve.h>

#include "client/client_core.h"
#include "client/client_fault.h"
#include "http/message/chunked_content.h"
#include "http/message/response_parser.h"
#include "socket/buffer_pool.h"

namespace coir::http::detail {

// Transfer is one request and its response, from the first byte sent to the last one read. A Response owns it.
//
// `in` is the only buffer that a plain request has: first the request's head lies in it, then the response's, with
// content behind it as far as it came along, and the records of the fields in its last quarter:
//
//   | head | content not read yet | free | fields |
//
// Where a head leaves no room for chunks, these have a buffer of their own.
//
// The parts: transfer.cpp, how one begins, is retried and ends; dialling.cpp, the connection; request_head.cpp;
// sending.cpp; receiving.cpp, heads of responses; redirects.cpp; response_content.cpp, and coded_content.cpp around it;
// websocket_client.cpp, a connection alone.
struct Transfer {
  using Outcome = std::expected<void, Error>;

  explicit Transfer(ClientCore& client, const ClientRequest& asked) noexcept
      : core(client), request(&asked), url_text(asked.url), method(asked.method), deadline(asked.deadline) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // perform makes the request and returns when the head of its response is there. destroy frees.
  static std::expected<Transfer*, Error> perform(ClientCore& core, const ClientRequest& request) noexcept;
  static void destroy(Transfer* transfer) noexcept;

  // read_content is Response::read, has_ended tells whether that would be the end. coded_content.cpp
  std::expected<std::size_t, Error> read_content(std::span<char> into) noexcept;
  bool has_ended() const noexcept { return decoding != nullptr || coded ? decoded_whole : done; }
  std::expected<std::size_t, Error> read_coded(std::span<char> into) noexcept;
  void end_decoding() noexcept;

  Outcome run() noexcept;
  // choose_way parses url_text and finds out whether a proxy leads to it.
  Outcome choose_way() noexcept;
  Outcome check() const noexcept;
  Outcome exchange() noexcept;
  Outcome exchange_once() noexcept;
  bool may_retry(Error error) noexcept;
  bool rewind_content() noexcept;
  // let_go gives the connection to the pool where it may carry another request, else closes it.
  void let_go() noexcept;

  // dialling.cpp
  std::string_view write_key() noexcept;
  Outcome connect() noexcept;
  Outcome dial(ClientConnection& to) noexcept;
  Outcome admit(Addresses& found) const noexcept;
  Outcome tunnel() noexcept;
  Outcome begin_tls() noexcept;

  // websocket_client.cpp
  std::expected<Stream, Error> open_stream() noexcept;

  // request_head.cpp: write_head returns the head, in `in`.
  std::expected<std::string_view, Error> write_head() noexcept;
  bool has_content() const noexcept {
    return with_content && (request->upload != nullptr || !request->content.empty());
  }
  bool waits_for_leave() const noexcept {
    return has_content() && request->continue_wait.count() != 0 && !without_expect;
  }

  // sending.cpp
  Outcome send() noexcept;
  Outcome send_all(std::string_view bytes, std::string_view more) noexcept;
  Outcome send_watching(std::string_view bytes) noexcept;
  Outcome send_upload() noexcept;
  Outcome ask_for_leave() noexcept;

  // receiving.cpp: read_head returns when a final head is there. took_head parses what has come: true, it is a final
  // one.
  AnswerTo answers() const noexcept { return method == "HEAD" ? AnswerTo::head : AnswerTo::other; }
  Outcome read_head(Deadline until, AnswerTo to) noexcept;
  std::expected<bool, Error> took_head(AnswerTo to) noexcept;
  Outcome read_more(Deadline until) noexcept;
  Outcome begin_content() noexcept;

  // redirects.cpp: leaves_out_expect prepares the request without Expect where a server has refused that. follow prepares the request that a redirect asks for. False: the response is the answer.
  bool leaves_out_expect() noexcept;
  std::expected<bool, Error> follow() noexcept;
  void drain() noexcept;

  // response_content.cpp: read_plain reads the content as it was sent.
  std::expected<std::size_t, Error> read_plain(std::span<char> into) noexcept;
  std::expected<std::size_t, Error> read_decoded(std::span<char> into) noexcept;
  void end_content() noexcept;

  Deadline until(Phase phase) const noexcept;
  Error of(Phase phase, Error error) const noexcept { return phase_error(error, phase, deadline); }
  std::span<char> room() const noexcept { return in.bytes().first(in.size() / 4 * 3); }
  Stream& stream() noexcept { return connection->stream; }

  ClientCore& core;
  const ClientRequest* request;  // null once the head of the response is there
  ClientConnection* connection = nullptr;
  Buffer in;
  Buffer window;      // for content in chunks, where the head has left no room behind it in `in`
  Buffer redirected;  // holds url_text behind a redirect
  Buffer collected;   // what Response::text has read
  struct Decoding;
  Decoding* decoding = nullptr;  // of a coded content, from its first read on
  std::string_view url_text;
  std::string_view method;
  Url url;
  std::optional<Url> proxy;
  ParsedResponse response;
  ChunkedContent chunks;
  std::span<char> raw;  // content that has come and is neither decoded nor delivered
  Deadline deadline;
  std::uint64_t left = 0;  // of content with a length
  std::uint32_t have = 0;  // bytes of a response in `in`
  std::uint32_t seen = 0;  // of these, parsed before
  std::uint32_t content_begin = 0;
  std::uint8_t redirects = 0;
  std::uint8_t interim = 0;
  bool in_place = false;        // it holds one of the pool's places
  bool fresh = false;           // no resting connection is taken
  bool tunnels = false;         // a proxy is asked for a tunnel by http too
  bool with_content = true;     // false behind a redirect that turned into GET
  bool drops_secrets = false;   // the origin has changed once
  bool without_expect = false;  // a server has answered 417
  bool sent_any = false;        // of this request on this connection
  bool received_any = false;
  bool got_head = false;       // `response` is a final one
  bool reusable = false;       // the connection may carry another request once the content has ended
  bool cut_short = false;      // content that was announced has not been sent
  bool done = false;           // the content has been read whole
  bool asks_coding = false;    // the request accepts ClientOptions::coding
  bool coded = false;          // the response's content has it
  bool decoded_whole = false;  // all of it has been read
};

}  // namespace coir::http::detail
