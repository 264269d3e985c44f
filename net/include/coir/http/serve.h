#pragma once

// Serves from the first connection to the exit status.
//
//   auto app = routes(get<"/">([](Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); }));
//   return serve({.listen = ":8080", .memory = 8 << 20}, app);

#include <coir/callable.h>
#include <coir/config.h>
#include <coir/http/detail/route_call.h>
#include <coir/http/server.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>

#if !COIR_NO_ASYNC
#include <coir/nursery.h>
#endif

namespace coir::http {

// ServeOptions is where a program serves, with how much memory and for how long.
struct ServeOptions {
  const char* name = "server";  // what its lines on standard error begin with
  // Addresses, with commas between them: "127.0.0.1:80", "[::1]:80", ":80" for all, "unix:/path". Port 0 lets the kernel
  // choose.
  std::string_view listen = "127.0.0.1:8080";
  std::string_view tls_listen = {};
  // A file with a certificate, its chain and its key, as PEM, that no other user may read. If there is no such file, serve
  // makes a certificate for this machine's name and keeps it there. On a board that has just started it waits for the kernel's
  // first random numbers, for 20 seconds at most.
  const char* certificate = "server.pem";
  std::size_t memory = SIZE_MAX;  // all that grows with load, in bytes; at most what the machine can spare
  ServerOptions server = {};      // its handler is serve's; its limits at most what fits into the memory
  Mode mode = kFibers ? Mode::fibers : Mode::serial;
  unsigned threads = 4;                             // of Mode::threads: how many requests it serves at once
  std::chrono::milliseconds drain_timeout{10'000};  // for requests in progress at SIGTERM and SIGINT
#if !COIR_NO_ASYNC
  // Called once, on a fiber, when the server has started: it starts the program's other work as children of `jobs`, and
  // returns. The children are cancelled when the server stops. If one fails, the server stops, and serve returns 1.
  Callable<void(Nursery& jobs)> jobs = {};
#endif
};

// MemoryPlan is the memory that a program may take, and the cost of each thing that it serves, in bytes.
struct MemoryPlan {
  std::size_t process = 0;     // resident before it serves
  std::size_t spare = 0;       // that the machine can spare; SIZE_MAX: it does not tell
  std::size_t kept_free = 0;   // of that, left to the rest of the machine
  std::size_t takeable = 0;    // the most that the machine allows the program, itself included; SIZE_MAX: any
  std::size_t ceiling = 0;     // the most that the program takes, itself included
  std::size_t connection = 0;  // a connection: its record, and the kernel's part
  std::size_t session = 0;     // a TLS session at rest; 0 without TLS
  std::size_t fiber = 0;       // the stack of a handler; 0 without fibers
  std::size_t request = 0;     // a request that is served: its buffers and its fiber
  std::size_t handshake = 0;   // a TLS handshake, which is served as a request while it computes; 0 without TLS
  std::size_t least = 0;       // the smallest ceiling that serves one request

  std::size_t room() const noexcept { return ceiling > process ? ceiling - process : 0; }
};

// measure_memory returns the plan for at most `memory` bytes, as serve makes it. `keep_free` is what the machine keeps;
// without it the board decides, or a 16th of the spare memory, from 1 MB to 64 MB. Before anything is served. A ceiling
// below `least` serves nothing. (memory_plan.cpp)
MemoryPlan measure_memory(const ServerOptions& server, std::size_t memory, bool tls,
                          std::optional<std::size_t> keep_free = {}) noexcept;

// plan_memory plans what serve would, raises the limit of open files, and lowers max_connections, max_active and
// max_handshakes of `options` to what fits. Before anything is served. Error: limit (the ceiling is below `least`); the
// plan is whole all the same.
std::expected<void, Error> plan_memory(ServeOptions& options, MemoryPlan& plan) noexcept;

// most_open_files raises the limit of open files as far as it goes, and returns it. SIZE_MAX: the kernel does not tell.
std::size_t most_open_files() noexcept;

namespace detail {
int serve(const ServeOptions& options, const ServerOptions& server, std::string_view problem) noexcept;
}  // namespace detail

// serve is main's whole work: it binds the addresses, plans the memory, answers by `answer` until SIGTERM or SIGINT comes,
// lets requests in progress end, and returns the exit status: 0 stopped as asked, 1 cannot run or cut off, 2 an option or
// an answer is wrong, as Proxy::problem says. One line on standard error says why, and one each where it listens. From
// a plain thread, usually main's.
template <class Answer>
int serve(const ServeOptions& options, Answer&& answer) noexcept {
  return detail::serve(options, answered_by(answer, options.server), detail::problem_of(answer));
}

}  // namespace coir::http
