#pragma once

// Requests to other servers.
//
//   auto response = http::get("https://board.example/status", {.deadline = Deadline::after(2s)});
//   if (!response) return complain(describe(response.error()));
//   if (auto good = response->expect_success(); !good) return complain(describe(good.error()));
//   if (auto body = response->text()) show(*body);

#include <coir/config.h>

#if !COIR_CLIENT
#error "this build of coir has no HTTP client: configure it with -DCOIR_CLIENT=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/wire/request.h>
#include <coir/net/address.h>
#if COIR_TLS
#include <coir/tls.h>
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace coir {
class JsonDocument;
}

namespace coir::http {

namespace detail {
struct ClientCore;
struct Transfer;
}  // namespace detail
struct ContentCoding;

// A client of HTTP/1.1, called the same way from fibers, threads and in a build without fibers.
//
// Connections are kept for the next request, redirects are followed, certificates are checked. A request takes one
// buffer of 4 KB while it is under way; a resting connection has none.

// Phase is a part of a request that has a deadline of its own.
enum class Phase : std::uint8_t { resolve, connect, tls, send, first_byte, between_bytes };

// Timeouts are how long each phase may take. `send` and `between_bytes` begin anew when bytes move, not with each call.
struct Timeouts {
  std::chrono::milliseconds resolve{10'000};
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds tls{15'000};
  std::chrono::milliseconds send{30'000};
  std::chrono::milliseconds first_byte{30'000};
  std::chrono::milliseconds between_bytes{30'000};
};

// ClientGuard says where a Client may go (ClientOptions::guard), for clients that are told by others what to fetch. It is
// asked twice: for the name of each hop, the first as every redirect's, before anything is looked up; and for each address
// that the name stands for, each time that a connection is made. Addresses that it does not admit are not connected
// to, and a hop that has none left fails as `invalid`, which describe tells.
//
//   struct OnlyPublic : ClientGuard { ... };
//   OnlyPublic guard{{.admits_host = &anybody, .admits_address = &is_public_one}};
//   auto client = Client::create({.guard = &guard});
//
// A client with a guard asks no proxy: a proxy would look the names up itself. Both functions are called from the request's fiber
// or thread; they must not wait.
struct ClientGuard {
  // `host` is a name or an address without brackets, in the case that the URL has; no dot is taken off its end.
  bool (*admits_host)(const ClientGuard& self, std::string_view host, std::uint16_t port) noexcept = nullptr;
  // `address` carries the port; it is a Unix socket's where ClientRequest::to names one.
  bool (*admits_address)(const ClientGuard& self, std::string_view host, const Address& address) noexcept = nullptr;
};

struct ClientOptions {
#if COIR_TLS
  // It names the authorities to trust, the certificate to show and the keys to pin. Empty: the authorities of the
  // system, which are read with the first request to https from $SSL_CERT_FILE or where systems keep them.
  TlsContext tls = {};
#endif
  std::uint32_t max_connections = 64;  // open at a time, resting ones included; further requests wait
  std::uint32_t max_resting = 16;
  // A connection that has rested for longer, or until a second before the server's own Keep-Alive ends, is not used again.
  // The next request closes it, wherever that leads: a client that asks nothing more keeps up to max_resting open until
  // close_resting, or until memory is short.
  std::chrono::milliseconds idle_time{30'000};
  std::uint32_t max_head =
      48 * 1024;  // bytes of a response's head; 4 KB at least and 48 KB at most, which are taken at need
  Timeouts timeouts = {};
  // http_proxy, https_proxy and no_proxy, in either case, say which proxy to take. HTTP_PROXY does not count inside CGI
  // (REQUEST_METHOD is set), where a request's field `Proxy` would set it.
  bool proxy_by_environment = true;
  // Asked for each place where a request leads, redirects included (coir/http/client.h); no proxy is asked then. It outlives
  // the client. Null: a request may go anywhere.
  const ClientGuard* guard = nullptr;
  // Asked for where a request neither has a range nor says what it accepts (Accept-Encoding), and taken off the content that is
  // read: kGzip. Null: content comes as it lies at the server.
  const ContentCoding* coding = nullptr;
  std::uint64_t max_decoded = 16 * 1024 * 1024;  // of one response whose content is so coded
};

#if COIR_GZIP
// kGzip (gzip.cpp) has a client ask for content that is compressed by gzip, and read it decompressed:
// Client::create({.coding = &kGzip, .max_decoded = 256 * 1024}). Only a program that names it carries zlib, 12 KB of it. A
// response that is read takes 7 KB of account::http, and 32 KB more if it does not decompress in one piece.
extern const ContentCoding kGzip;
#endif

// RequestField is a header field of a request. `secret` ones are dropped for good when a redirect leaves the origin, as
// Authorization, Cookie and Proxy-Authorization always are.
struct RequestField {
  std::string_view name;
  std::string_view value;
  bool secret = false;
};

// Upload is content that is made while it is sent.
struct Upload {
  // read puts the next bytes into `into` and returns how many; 0: the end.
  using Read = std::expected<std::size_t, Error> (*)(Upload& self, std::span<char> into) noexcept;
  // rewind begins again. False: it cannot, as when there is none; then no retry and no redirect repeats the content.
  using Rewind = bool (*)(Upload& self) noexcept;

  Read read = nullptr;
  Rewind rewind = nullptr;
  std::optional<std::uint64_t> size = {};  // absent: it is sent in chunks
};

// ByteRange asks for a part: `last` is included; absent, to the end.
struct ByteRange {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> last;
};

// ClientRequest is what is asked of a server. Everything it points to lives until the response is there.
struct ClientRequest {
  std::string_view url = {};
  Deadline deadline = {};  // of the request with its content, redirects and all
  std::string_view method = "GET";
  // Host may be among them. Content-Length, Transfer-Encoding, Connection and Expect are the client's.
  std::span<const RequestField> fields = {};
  std::string_view content_type = {};
  std::string_view content = {};
  Upload* upload = nullptr;  // instead of `content`
  // A Unix socket to connect to, or another address than the URL's; no proxy is asked then.
  const Address* to = nullptr;
  std::optional<ByteRange> range = {};
  // The entity tag or date that the earlier part had: another version is then sent whole (200).
  std::string_view if_range = {};
  unsigned max_redirects = 10;  // 0: a redirect is the response
  // Content is sent once the server wants it (100), or has been silent for this long. 0: at once.
  std::chrono::milliseconds continue_wait{0};
};

// ContentRange is which part of how much a 206 holds. `size` is absent where the server does not know it.
struct ContentRange {
  std::uint64_t first;
  std::uint64_t last;
  std::optional<std::uint64_t> size;
};

// Response is the answer to a request: the head is there, the content is read by its owner. One owner at a time; on any
// fiber or thread. The destructor closes the connection unless all of the content was read. It must end before its
// Client does.
class Response {
 public:
  Response() noexcept = default;
  Response(Response&& other) noexcept : transfer_(std::exchange(other.transfer_, nullptr)) {}
  Response& operator=(Response&& other) noexcept {
    std::swap(transfer_, other.transfer_);
    return *this;
  }
  ~Response();

  int status() const noexcept;
  std::string_view reason() const noexcept;
  std::span<const Header> headers() const noexcept;
  // header returns the first value of a field, or an absent view.
  std::string_view header(std::string_view name) const noexcept;
  // url is where the response came from, behind all redirects.
  std::string_view url() const noexcept;
  // content_length is absent where the server did not say how much comes, and where the content is decoded (ContentCoding).
  std::optional<std::uint64_t> content_length() const noexcept;
  // content_range reads Content-Range. Absent: there is none, or it is malformed.
  std::optional<ContentRange> content_range() const noexcept;

  // expect_success tells by an error that the status is none of 200 to 299. Errors, which describe tells with the
  // status: not_found (404, 410), temporary (408, 425, 429, 500 and up), invalid (any other).
  [[nodiscard]] std::expected<void, Error> expect_success() const noexcept;

  // read waits until at least one byte of the content is there and returns how many were put into `into`, which must
  // not be empty. Errors: end_of_stream (that was all of it, whole), truncated (the connection ended before),
  // protocol, invalid (`into` is empty), limit and no_memory (of ContentCoding: over max_decoded); those of Stream::read.
  [[nodiscard]] std::expected<std::size_t, Error> read(std::span<char> into) noexcept;

  // text reads the rest of the content, of `most` bytes at most, into a buffer of the response, and returns it. After
  // timed_out and cancelled another call goes on where this one was.
  // Errors: limit (it is longer than `most` or than 1 MiB), no_memory; those of read but end_of_stream.
  [[nodiscard]] std::expected<std::string_view, Error> text(std::size_t most = 64 * 1024) noexcept;

#if COIR_JSON
  // json reads the rest of the content, of `most` bytes at most, as a document of coir/json.h, which owns its memory:
  // the response may end before it. In response_json.cpp.
  // Errors: unsupported (its Content-Type is neither application/json nor one that ends in +json), protocol (it is not
  // JSON, or nested deeper than JsonLimits), limit (it is longer than `most`), no_memory; those of text.
  [[nodiscard]] std::expected<JsonDocument, Error> json(std::size_t most = 64 * 1024) noexcept;
#endif

  // These are for the parts of the client.
  explicit Response(detail::Transfer* transfer) noexcept : transfer_(transfer) {}
  detail::Transfer& transfer() const noexcept { return *transfer_; }

 private:
  detail::Transfer* transfer_ = nullptr;
};

// Client keeps connections, and what all its requests have in common. Fibers and threads may share one. Move-only; the
// destructor closes what rests.
//
// Errors of its requests, where describe tells the phase that has timed out:
//
//   invalid       the URL, a field or the method is malformed; ClientOptions::guard admits nothing there
//   unsupported   another scheme than http and https; https in a build without TLS
//   timed_out, cancelled
//   limit         too many connections, redirects or fields; a response's head over 48 KB, a request's over 64 KB
//   protocol      what the server sent is no HTTP, or leads from https to http
//   end_of_stream, closed, truncated    the server has hung up
//   untrusted, alert                    of TLS
//   no_memory, not_found, temporary, system    of resolve and connect
//
// A request on a connection that had rested is made once more on a new one when the server had hung up before the first
// byte of a response, and the request may be repeated: its method is idempotent (GET, HEAD, PUT, DELETE, OPTIONS) or
// nothing of it was sent, and its content can be rewound.
class Client {
 public:
  // create makes a client. Errors: no_memory.
  [[nodiscard]] static std::expected<Client, Error> create(const ClientOptions& options = {}) noexcept;

  Client(Client&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Client();

  // request waits until the head of the response is there.
  [[nodiscard]] std::expected<Response, Error> request(const ClientRequest& request) noexcept;

  // These are request with the method, and where it has some, the content filled in. client_methods.cpp has them.
  [[nodiscard]] std::expected<Response, Error> get(std::string_view url, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> head(std::string_view url, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> del(std::string_view url, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> options(std::string_view url, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> post(std::string_view url, std::string_view content,
                                                    std::string_view content_type, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> put(std::string_view url, std::string_view content,
                                                   std::string_view content_type, ClientRequest rest = {}) noexcept;
  [[nodiscard]] std::expected<Response, Error> patch(std::string_view url, std::string_view content,
                                                     std::string_view content_type, ClientRequest rest = {}) noexcept;

  // close_resting closes the connections that rest, as happens by itself when memory is short.
  void close_resting() noexcept;
  // resting is how many connections rest, open how many there are.
  std::size_t resting() const noexcept;
  std::size_t open() const noexcept;

  // core is for the parts of the client.
  detail::ClientCore& core() const noexcept { return *core_; }

  // shared is the client that the functions below use, made with the first of them. Null: there is no memory for it.
  static Client* shared() noexcept;

 private:
  explicit Client(detail::ClientCore* core) noexcept : core_(core) {}

  detail::ClientCore* core_;
};

// Requests by Client::shared(). Errors: the client's.
[[nodiscard]] std::expected<Response, Error> get(std::string_view url, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> head(std::string_view url, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> del(std::string_view url, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> options(std::string_view url, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> post(std::string_view url, std::string_view content,
                                                  std::string_view content_type, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> put(std::string_view url, std::string_view content,
                                                 std::string_view content_type, ClientRequest rest = {}) noexcept;
[[nodiscard]] std::expected<Response, Error> patch(std::string_view url, std::string_view content,
                                                   std::string_view content_type, ClientRequest rest = {}) noexcept;

// timed_out_phase tells in which phase a request's time was up, if it was one of ClientOptions::timeouts.
std::optional<Phase> timed_out_phase(Error error) noexcept;

}  // namespace coir::http
