#pragma once

#include <coir/http/detail/content_coding.h>
#include <coir/http/wire/url.h>
#include <coir/net/address.h>

#include <algorithm>

#include "client/client_core.h"
#include "client/client_fault.h"
#include "http/message/chunked_content.h"
#include "outbound/dialler.h"
#include "outbound/exchange.h"

namespace coir::http::detail {

// SentTransfer is a transfer whose server is silent: its connection, and the place that it holds among its client's.
struct SentTransfer {
  ClientCore* core = nullptr;
  PooledConnection* connection = nullptr;
  Deadline answer_by;  // of the first byte
  bool asks_coding = false;

  // drop closes the connection, if there is one, and gives the place back.
  void drop() noexcept;
};

// Transfer is one request and its response, from the first byte sent to the last one read. A Response owns it.
//
// OutboundExchange's memory is the only buffer that a plain request has. If a head leaves no room in it for chunks,
// these have a buffer of their own.
//
// The parts: transfer.cpp, how one begins, is retried and ends; transfer_connection.cpp, the connection; request_head.cpp;
// upload.cpp; redirects.cpp; response_content.cpp, and coded_content.cpp around it;
// websocket_client.cpp, a connection alone.
struct Transfer final : OutboundExchange {
  explicit Transfer(ClientCore& client, const ClientRequest& asked) noexcept
      : OutboundExchange(std::clamp(client.options.max_head, 4096u, kMostHead)),
        core(client),
        request(&asked),
        url_text(asked.url),
        method(asked.method),
        deadline(asked.deadline) {}
  ~Transfer();

  // make returns one with the request's address behind it, or null where there is no memory.
  static Transfer* make(ClientCore& core, const ClientRequest& request) noexcept;
  // perform makes the request and returns when the head of its response is there. destroy frees.
  static std::expected<Transfer*, Error> perform(ClientCore& core, const ClientRequest& request) noexcept;
  static void destroy(Transfer* transfer) noexcept;
  // start sends the request and does not wait for the answer. If nothing of it has come, leave_sent destroys the transfer
  // and returns what is kept, from whose connection nobody reads, and take_up makes a transfer of that. finish waits for
  // the head of the response. Neither a redirect is followed then nor anything sent again.
  static std::expected<Transfer*, Error> start(ClientCore& core, const ClientRequest& request) noexcept;
  bool waits() const noexcept { return room.empty(); }
  static SentTransfer leave_sent(Transfer* transfer) noexcept;
  // `request` has the method and the address that were sent. Errors: no_memory; then `sent` is as it was.
  static std::expected<Transfer*, Error> take_up(SentTransfer& sent, const ClientRequest& request) noexcept;
  Outcome finish() noexcept;

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
  Outcome ask_alone() noexcept;
  Outcome ask() noexcept;
  Outcome hear_answer() noexcept;
  Outcome await_head() noexcept;
  void give_room() noexcept;
  bool may_retry(Error error) noexcept;
  bool rewind_content() noexcept;
  // let_go gives the connection to the pool where it may carry another request, else closes it, as close does.
  void let_go() noexcept;
  void close(bool in_good_order) noexcept;

  // transfer_connection.cpp
  std::string_view write_key() noexcept;
  Outcome connect() noexcept;
  Outcome dial(Dialler& dialler) noexcept;
  Outcome reach(Dialler& dialler) noexcept;
  Outcome admit(Addresses& found) const noexcept;

  // websocket_client.cpp
  std::expected<Stream, Error> open_stream() noexcept;

  // request_head.cpp: write_head returns the head, in `room`.
  std::expected<std::string_view, Error> write_head() noexcept;
  bool has_content() const noexcept {
    return with_content && (request->upload != nullptr || !request->content.empty());
  }
  bool waits_for_leave() const noexcept {
    return has_content() && request->continue_wait.count() != 0 && !without_expect;
  }

  AnswerTo answer_to_method() const noexcept { return method == "HEAD" ? AnswerTo::head : AnswerTo::other; }

  // upload.cpp
  Outcome send() noexcept;
  Outcome send_more(std::string_view bytes) noexcept;
  Outcome send_upload() noexcept;

  // redirects.cpp: leaves_out_expect prepares the request without Expect where a server has refused that. follow
  // prepares the request that a redirect asks for. False: the response is the answer.
  bool leaves_out_expect() noexcept;
  std::expected<bool, Error> follow() noexcept;
  void drain() noexcept;

  // response_content.cpp: begin_content follows a final head. read_plain reads the content as it was sent.
  Outcome begin_content() noexcept;
  std::expected<std::size_t, Error> read_plain(std::span<char> into) noexcept;
  std::expected<std::size_t, Error> read_decoded(std::span<char> into) noexcept;
  std::expected<std::size_t, Error> receive(std::span<char> into) noexcept;
  void end_content() noexcept;

  Deadline until(Phase phase) const noexcept;
  Error of(Phase phase, Error error) const noexcept { return phase_error(error, phase, deadline); }
  Pace pace() const noexcept { return {core.options.timeouts.send, deadline}; }

  ClientCore& core;
  const ClientRequest* request;  // null once the head of the response is there
  PooledConnection* connection = nullptr;
  Buffer window;      // for content in chunks, where the head has left no room behind it
  Buffer redirected;  // holds url_text behind a redirect
  Buffer collected;   // what Response::text has read: collected_bytes
  struct Decoding;
  Decoding* decoding = nullptr;  // of a coded content, from its first read on
  std::string_view url_text;
  std::string_view method;
  Url url;
  std::optional<Url> proxy;
  ChunkedContent chunks;
  std::span<char> raw;  // content that has come and is neither decoded nor delivered
  Deadline deadline;
  Deadline answer_by;      // of the first byte, behind start
  Deadline silent_by;      // of the next byte of content, once it has been waited for; else never
  std::uint64_t left = 0;  // of content with a length
  std::size_t collected_bytes = 0;
  std::size_t bytes_behind = 0;  // what make has put behind it
  unsigned redirects = 0;
  bool in_place = false;        // it holds one of the pool's places
  bool fresh = false;           // no resting connection is taken
  bool tunnels = false;         // a proxy is asked for a tunnel by http too
  bool with_content = true;     // false behind a redirect that turned into GET
  bool drops_secrets = false;   // the origin has changed once
  bool without_expect = false;  // a server has answered 417
  bool reusable = false;        // the connection may carry another request once the content has ended
  bool cut_short = false;       // content that was announced has not been sent
  bool done = false;            // the content has been read whole
  bool asks_coding = false;     // the request accepts ClientOptions::coding
  bool coded = false;           // the response's content has it
  bool decoded_whole = false;   // all of it has been read
};

}  // namespace coir::http::detail
