#pragma once

#include <coir/port/needs_fibers.h>

#if !COIR_FASTCGI
#error "this build of coir has no FastCGI: configure it with -DCOIR_FASTCGI=ON"
#endif

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/http/exchange.h>
#include <coir/http/upstreams.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

class FileTree;

// FastCgiScript is what an application is told of the script that a request is for (RFC 3875, 4.1).
struct FastCgiScript {
  std::string_view name = {};  // SCRIPT_NAME: the script's path, decoded, with a slash in front; empty: "/" alone
  std::string_view info = {};  // PATH_INFO: what of the path stands behind it; empty: nothing
};

// find_script takes a request's path apart at the file that answers it: the shortest beginning of the path, up to a
// slash or its end, that names a regular file below `files`. Of a path that ends in '/' that is `index` in that folder,
// if `index` is not empty. A path that names no file is never told to an application. With `suffix` (".php") the file's
// name ends so. `path` is the request's, undecoded; the views point into `memory`, of path.size() + index.size() + 3
// bytes at least. Errors: invalid (the path is malformed or leaves the root: 400), not_found (404), limit (it does not
// fit: 414; no descriptor is left), system. On a fiber; one system call or more for each segment of the path.
[[nodiscard]] std::expected<FastCgiScript, Error> find_script(std::string_view path, FileTree& files,
                                                              std::string_view suffix, std::string_view index,
                                                              std::span<char> memory) noexcept;

// FastCgiParam is a parameter that a program adds, or puts in a usual one's place.
struct FastCgiParam {
  std::string_view name, value;
};

// FastCgiCounters may be read by any thread.
struct FastCgiCounters {
  Atomic<std::uint64_t> answered{0};     // responses whose head came from an application
  Atomic<std::uint64_t> bad_gateway{0};  // 502: no connection, hung up, or no response
  Atomic<std::uint64_t> unavailable{0};  // 503: nobody may be asked, or the application says that it is overloaded
  Atomic<std::uint64_t> timed_out{0};    // 504
  Atomic<std::uint64_t> retried{0};      // on another connection
  Atomic<std::uint64_t> cut{0};          // responses that the application did not end
  Atomic<std::uint64_t> cancelled{0};    // requests aborted because their client had gone
};

// FastCgiRules say how exchanges are passed to an application.
struct FastCgiRules {
  std::string_view root = {};  // DOCUMENT_ROOT; SCRIPT_FILENAME is this and the script's name
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
  // processes: up to 16 KB in memory, more in a nameless file in this folder, up to so many bytes (413). Null: nothing is
  // kept; content without a length, which an application has to be told beforehand, is answered 411.
  const char* spool = nullptr;
  std::uint64_t most_spooled = 1024 * 1024;
  bool buffers = true;  // false: of content with a length nothing is kept, it passes as it comes
  // complain is told each line of what the application writes to its stderr, kMostComplaints bytes a request; a line's
  // controls are dots. It must not wait. Null: nobody is.
  void (*complain)(void* context, std::string_view line) noexcept = nullptr;
  void* context = nullptr;
  FastCgiCounters* counters = nullptr;  // counted in, where they are not null

  static constexpr std::size_t kMostComplaints = 4096;
};

// forward_to_fastcgi answers `exchange` by what a FastCGI application of `group` answers as a responder, and returns
// when the response has been passed on. Content that is not kept first passes both ways as it comes, at the same time where
// the script writes before it has read all, through two buffers: whoever is slow slows the other side down. Connections are
// kept where the application keeps them.
//
// The application is told what RFC 3875 has, and REQUEST_URI, REQUEST_SCHEME, HTTPS, DOCUMENT_ROOT, SCRIPT_FILENAME and
// REDIRECT_STATUS. Fields become HTTP_ parameters, those of one name joined; Proxy (CVE-2016-5385), those of the hop and
// those whose name holds anything but letters, digits and '-' do not.
//
// A request whose connection turns out to be closed before anything was heard on it is tried once more on a new one, if
// it may be repeated. When the client goes the request is aborted. In a handler, on a fiber of 16 KB.
void forward_to_fastcgi(Exchange& exchange, UpstreamGroup& group, const FastCgiScript& script,
                        const FastCgiRules& rules) noexcept;

}  // namespace coir::http
