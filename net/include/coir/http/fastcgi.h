#pragma once

// FastCgi answers exchanges by what an application answers over FastCGI, such as php-fpm. It is mounted like a handler:
//
//   auto app = routes(any<"/app/{path...}">(FastCgi{"127.0.0.1:9000", {.prefix = "/app"}}),
//                     any<"/{path...}">(FastCgi{"unix:/run/php-fpm.sock", {.root = "/srv/www", .suffix = ".php"}}));
//   return serve({.listen = ":8080"}, app);

#include <coir/atomic.h>
#include <coir/callable.h>
#include <coir/http/detail/upstream_server.h>
#include <coir/http/exchange.h>

#if !COIR_FASTCGI
#error "this build of coir has no FastCGI: configure it with -DCOIR_FASTCGI=ON"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace coir::http {

class FastCgiState;
class FileTree;
struct MetricsPart;

// FastCgiParam is a parameter that a program adds, or that replaces a usual one.
struct FastCgiParam {
  std::string_view name, value;
};

// FastCgiCounters may be read by any thread.
struct FastCgiCounters {
  Atomic<std::uint64_t> answered{0};     // responses whose head came from an application
  Atomic<std::uint64_t> unspooled{0};    // 500: the folder of `spool` takes no content
  Atomic<std::uint64_t> bad_gateway{0};  // 502: no connection, hung up, or no response
  Atomic<std::uint64_t> unavailable{0};  // 503: no server may be asked, or the application says that it is overloaded
  Atomic<std::uint64_t> timed_out{0};    // 504
  Atomic<std::uint64_t> retried{0};      // on another connection
  Atomic<std::uint64_t> cut{0};          // responses that the application did not end
  Atomic<std::uint64_t> cancelled{0};    // requests aborted because their client had gone
};

// FastCgiOptions says which script answers an exchange, and how it is passed on. It refers to what outlives the FastCgi.
struct FastCgiOptions {
  // Without a suffix: the paths that the application answers. The script is the file of `files` that the path names, else
  // the prefix itself; the rest of the path is PATH_INFO. With a suffix, such as ".php", the script is the first file on
  // the path whose name ends so, or "index.php" in the folder that the path names; other paths are not answered.
  std::string_view prefix = "/";
  std::string_view suffix = {};
  FileTree* files = nullptr;    // where scripts are looked for; a suffix needs one
  std::string_view front = {};  // with a suffix: the script, such as "/index.php", for paths that name no file
  std::string_view root = {};   // DOCUMENT_ROOT; SCRIPT_FILENAME is this and the script's name
  std::span<const FastCgiParam> params = {};
  // How long a connection, the first byte of a response and each further one may take.
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds first_byte{60'000};
  std::chrono::milliseconds idle{60'000};
  std::chrono::seconds retry_after{1};  // what 503 says
  // keep asks the application to keep connections for further requests. An application of few processes, such as
  // php-fpm, spends one on each connection that rests: then those that wait for a process wait for ever.
  bool keep = false;
  // Content is kept whole before the application is asked, so that clients that are slow to send it do not occupy its
  // processes: up to 16 KB in memory, more in a nameless file in this folder, up to so many bytes (413), until the
  // application has it. A file in RAM (tmpfs, ramfs) is charged to account::http, and without room there answered 503.
  // Null: nothing is kept. A request whose content has no length is then answered 411, because an application is told the
  // length first.
  const char* spool = nullptr;
  std::uint64_t most_spooled = 1024 * 1024;
  bool buffers = true;                  // false: content with a length is not kept, it passes as it comes
  std::uint64_t max_body = UINT64_MAX;  // content over it, or over the server's own limit, is answered 413
  // complain gets each line that the application writes to its stderr, kMostComplaints bytes a request; a line's controls
  // are dots. on_change is ProxyOptions's. They must not wait.
  Callable<void(std::string_view line)> complain = {};
  Callable<void(const UpstreamNews& news)> on_change = {};

  static constexpr std::size_t kMostComplaints = 4096;
};

// FastCgi has an application answer as a responder, over one of its servers ("host:port", "unix:/path"). Content that is
// not kept first passes both ways as it comes, at the same time if the script writes before it has read all, through two
// buffers: the slower side slows the other down.
//
// The application gets the parameters of RFC 3875, and REQUEST_URI, REQUEST_SCHEME, HTTPS, DOCUMENT_ROOT, SCRIPT_FILENAME
// and REDIRECT_STATUS. Fields become HTTP_ parameters, those of one name joined; Proxy (CVE-2016-5385), those of the hop
// and those whose name holds anything but letters, digits and '-' do not.
//
// A request whose connection turns out to be closed before anything was heard on it is tried once more on a new one, if
// it may be repeated. When the client leaves, the request is aborted. A FastCgi answers for one server at a time and may be
// destroyed once that has stopped, before or after the server and the run. Move-only, until it is used.
class FastCgi {
 public:
  // These ask no server; the addresses are copied.
  template <std::size_t kCount>
  explicit FastCgi(const UpstreamServer (&servers)[kCount], const FastCgiOptions& options = {}) noexcept
      : FastCgi(std::span<const UpstreamServer>(servers), options) {
    static_assert(kCount <= UpstreamServer::kMost);
  }
  explicit FastCgi(const UpstreamServer& server, const FastCgiOptions& options = {}) noexcept
      : FastCgi(std::span(&server, 1), options) {}
  explicit FastCgi(std::span<const UpstreamServer> servers, const FastCgiOptions& options = {}) noexcept;

  FastCgi(FastCgi&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  FastCgi& operator=(FastCgi&&) = delete;
  ~FastCgi();

  // problem is Proxy's.
  std::string_view problem() const noexcept;

  // This answers an exchange: 404 if there is no script, 502, 503 or 504 if no server answers. In a handler, on a fiber
  // of 16 KB. serve is the same, but returns false, without an answer, if there is no script.
  void operator()(Exchange& exchange) noexcept;
  bool serve(Exchange& exchange) noexcept;

  // watch is Proxy's, by connecting. It happens by itself if there is on_change. Errors: invalid (problem says why),
  // no_memory, limit, unsupported.
  [[nodiscard]] std::expected<void, Error> watch() noexcept;

  const FastCgiCounters& counters() const noexcept;

  // state is for this library.
  FastCgiState* state() const noexcept { return state_; }

 private:
  FastCgiState* state_;
};

// metrics_part and each_upstream are those of coir/http/proxy.h.
MetricsPart metrics_part(const FastCgi& application) noexcept;
void each_upstream(const FastCgi& application, Callable<void(const UpstreamInfo& server)> visit) noexcept;

}  // namespace coir::http
