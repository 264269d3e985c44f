#pragma once

// One request and its response.
//
//   void hello(Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); }
//
//   void upload(Exchange& exchange) {
//     char piece[1024];
//     while (auto got = exchange.read_body(piece)) show(std::string_view(piece, *got));
//     exchange.respond_status(204);
//   }

#include <coir/callable.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>
#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir {
class Case;
struct TlsPeer;
}  // namespace coir

namespace coir::http {

struct Session;

// Exchange is one request and its response, as a handler sees it. It lives as long as the handler runs.
//
// A handler reads top to bottom: every call that needs the client waits for it. Errors need no handling beyond
// returning: the connection is closed, or the right error is answered, when the handler ends. Answers to HEAD are
// written as for GET; their content is dropped. A handler that answers nothing answers 500.
//
// End of the client. A handler runs in a cancel scope (coir/cancel_scope.h). Once the client has reset the connection,
// all its waits end with `cancelled`, those of its nurseries' children too. Once the client has ended its side, or the
// server stops, so do its waits for other things than the client, from the first on; but a handler that is only writing
// its answer goes on, and so does each call of a child that writes. An answer given after `cancelled` still reaches a
// client that listens, if it needs no wait: up to what the socket's buffer holds. Without fibers, and on a kernel without
// epoll while bytes lie unread behind the request, a hang-up is noticed by reading and writing only.
//
// Places. At most ServerOptions::max_active exchanges hold a place and a session's buffers at a time. A handler that
// waits in its own code (sleep, select, a channel, a client's request, its children) offers them, and once its waits,
// those for its client included, have taken 20 ms together, others may take them when no place is free; its next call
// of the exchange waits for a place again. request() stays where it is all the while. Its buffers stay with it,
// charged, if something lies in them that it goes on with: a head of more than about 500 bytes, unread content, an
// unsent answer, memory from scratch() or path_memory(); or if it has children, which may use the exchange. A fiber
// that is no child of the handler's must not use the exchange while the handler waits. So only the ledger bounds how
// many handlers wait.
//
// Stack. A handler runs on the connection's fiber, whose stack is ServerOptions::handler_stack. The server keeps 3 KB of
// it. So:
//
//   8 KB    5 KB for the handler: all calls of coir, none of which takes more than 4 KB; no function of the printf
//           family, of which musl's take 9.3 to 9.7 KB whatever they format
//   16 KB   the default: 13 KB for the handler, snprintf among its calls, or 10 KB of its own arrays
//
// An overflow ends the process with a line that names the fiber. Keep larger objects in scratch(), or call
// on_worker_stack (coir/worker_stack.h), as long as it does not wait.
class Exchange {
 public:
  explicit Exchange(Session& session) noexcept : session_(session) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const noexcept;
  // secure tells whether the request came over TLS.
  bool secure() const noexcept;

  // listener returns the mark that Server::add was given with the listener of this connection.
  std::uint8_t listener() const noexcept;

  // peer_address is the client's, as the socket has it. Errors: closed, system.
  std::expected<Address, Error> peer_address() const noexcept;

  // certificate is who the client is by its certificate: null without TLS, where the context asks for none or does not
  // remember clients (TlsContext::Server::remember_clients; coir/tls.h has TlsPeer). It lives as long as the
  // handler runs.
  const TlsPeer* certificate() const noexcept;

  // client_gone and stopping are cases for a select of coir/select.h, in the handler's own fiber: ready once the client
  // has ended its side or is gone, and once the server stops. A select that lists the case
  // reports it instead of being cancelled; the handler's later waits are cancelled. A build without fibers has neither.
  //
  //   auto won = select({Case::opened(news), exchange.client_gone(), Case::after(30s)});
  Case client_gone() noexcept;
  Case stopping() noexcept;

  // read_body waits for at least one byte of the request's content and returns how many were put into `into` (not
  // empty). Sends "100 Continue" first when the client waits for it. The content is bounded by Limits::max_body.
  // Errors: end_of_stream (all of it has been read), timed_out, limit, invalid, closed, cancelled. The last five are
  // answered by 408, 413, 400 or by closing, once the handler returns.
  [[nodiscard]] std::expected<std::size_t, Error> read_body(std::span<char> into) noexcept;

  // set_body_pace has this request's content be waited for by other rules than ServerOptions::body_timeout and body_rate,
  // for a route whose clients are slower or may be less trusted.
  void set_body_pace(std::chrono::milliseconds timeout, std::uint32_t rate) noexcept;

  // trailer returns the first value of the trailer field called `name` (compared without case) that followed chunked
  // content, or an absent view (data() == nullptr). They are there once read_body has returned end_of_stream, up to
  // kTrailerBytes of them. They frame nothing and are no part of the head: the handler asks for what it knows.
  std::string_view trailer(std::string_view name) const noexcept;
  static constexpr std::size_t kTrailerBytes = 1024;

  // respond answers with the whole content at once. `fields` are further header lines, each ended by CRLF, trusted.
  void respond(int status, std::string_view content_type, std::string_view content,
               std::string_view fields = {}) noexcept;

  // respond_status answers with the status' own words as plain text. `fields` as above.
  void respond_status(int status, std::string_view fields = {}) noexcept;

  // answer_errors_by has `look` answer in place of the status' own words, while this exchange lasts: when respond_status
  // is called with 400 or more, in this handler or by coir, and when the handler ends without an answer. It answers with
  // that status, at once; the fields of respond_status are added. If these do not fit in kAddedFieldBytes, or the function
  // does not answer, the status' own words are sent.
  // Objects that `look` refers to must live as long as the exchange. on_error of coir/http/routes.h calls this.
  using ErrorLook = Callable<void(Exchange& exchange, int status)>;
  void answer_errors_by(const ErrorLook& look) noexcept;

#if COIR_JSON
  // respond_json answers with a value as JSON, with its Content-Length: a struct that fields_of declares
  // (coir/json_fields.h), a list of values, a text, a number or a truth. An empty std::optional and a null pointer are
  // answered by 404, others by what they hold. The value is written twice, the first time to be measured, and must not
  // change meanwhile; nothing is allocated. coir/http/content.h, which coir/http.h includes, defines it.
  template <class T>
  void respond_json(const T& value, int status = 200) noexcept;
#endif

  // add_fields has the lines ("Name: value\r\n", trusted) stand in every head that is begun from now on, for what
  // stands around a handler. Lines that do not fit in kAddedFieldBytes, all together, have the request answered 500.
  void add_fields(std::string_view lines) noexcept;
  static constexpr std::size_t kAddedFieldBytes = 512;

  // status is that of the response begun last, 0 before.
  int status() const noexcept;

  // start begins a response: status line and Date. Add fields to the head that is returned, not the framing ones, then
  // call one of begin_fixed, begin_chunked and begin_empty. Content of the request that the handler has not begun to
  // read is read and dropped first, so that what is wrong with it is answered instead.
  ResponseHead& start(int status) noexcept;

  // Errors of begin_fixed, begin_chunked and begin_empty: closed (the connection has failed), invalid (start was not
  // called, or the response has begun), limit (the head is too long).
  //
  // begin_fixed ends the head of a response with `bytes` of content, all of which must follow by write and send_file.
  [[nodiscard]] std::expected<void, Error> begin_fixed(std::uint64_t bytes) noexcept;
  // begin_chunked ends the head of a response whose length is not known: chunked, or ended by close for an HTTP/1.0
  // client. Errors: as begin_fixed.
  [[nodiscard]] std::expected<void, Error> begin_chunked() noexcept;
  // begin_empty ends the head of a response that has no content by its status: 204 or 304. Errors: as begin_fixed.
  [[nodiscard]] std::expected<void, Error> begin_empty() noexcept;

  // write adds to the content. Small pieces are gathered; the client sees them when the memory for them is full, at
  // flush, or when the handler returns. Waits while the client is slow, as long as it makes progress within
  // ServerOptions::write_timeout. Errors: timed_out, closed, cancelled, invalid (more than begin_fixed promised).
  [[nodiscard]] std::expected<void, Error> write(std::string_view content) noexcept;

  // send_file adds `count` bytes of the regular file `file` from `offset` on, without copying large ones.
  // Errors: as write; end_of_stream (the file has become shorter); system (it cannot be read).
  [[nodiscard]] std::expected<void, Error> send_file(int file, std::uint64_t offset, std::uint64_t count) noexcept;

  // add_trailer has a field follow chunked content, between begin_chunked and the handler's end; "Trailer" in the head
  // may announce it. Errors: unsupported (the client has not said "TE: trailers", or the content is not chunked:
  // whoever needs the field says it otherwise), invalid (begin_chunked was not called; a control in the value), limit
  // (over kAddedFieldBytes of them).
  [[nodiscard]] std::expected<void, Error> add_trailer(std::string_view name, std::string_view value) noexcept;

  // flush sends what has been gathered. Errors as write.
  [[nodiscard]] std::expected<void, Error> flush() noexcept;

  // free_descriptor closes the connection that has been idle for longest, and longer than ServerOptions::evict_after,
  // for a handler that finds no descriptor free. False: there is none.
  bool free_descriptor() noexcept;

  // close_after makes this the connection's last exchange. Before begin_... it is announced to the client.
  void close_after() noexcept;

  // scratch is memory for the handler's own use while it runs, 4 KiB and more: larger than what its stack should hold.
  std::span<char> scratch() noexcept;

  // release_buffer gives the place and the buffers away at once, for a handler that is about to wait for long: it sends
  // what has been gathered, and the content of scratch() is lost. If the head is long, or content is unread, the pages
  // stay that hold it, and the others go when the handler waits, unless it uses them before. It does nothing between start
  // and begin_..., and without fibers. Cost: little; where pages stay, a system call and page faults of a handler that waits.
  void release_buffer() noexcept;

  // path_memory is where coir/http/routes.h decodes the path, if it holds any escape.
  std::span<char> path_memory() noexcept;

  // now is the wall clock in seconds since 1970, read once for the exchange.
  std::int64_t now() noexcept;

 private:
  // Session::of is the way of coir's own parts to the session behind.
  friend struct Session;

  Session& session_;
};

}  // namespace coir::http
