#pragma once

// One handler on one listener, until a signal comes.
//
//   int main() {
//     auto listener = coir::TcpListener::listen(*coir::Address::parse(":8080"));
//     if (!listener) return 1;
//     const auto hello = [](coir::http::Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); };
//     return coir::http::run({.handler = hello}, std::move(*listener), {SIGTERM, SIGINT}) ? 0 : 1;
//   }

#include <coir/error.h>
#include <coir/http/server.h>
#include <coir/tcp.h>

#include <cstddef>
#include <expected>
#include <initializer_list>

namespace coir::http {

// The same handler serves in three ways, each of them one call from main():
//
//                              a connection between two requests               builds
//   run        one thread      is closed when another client waits             all; without fibers it rests
//   run_pool   n more threads  keeps its thread: n clients are served          several workers
//   run_async  fibers          rests: a record (coir/http/run_async.h)         with fibers
//
//   int main() {
//     auto listener = coir::TcpListener::listen(*coir::Address::parse(":8080"));
//     if (!listener) return 1;
//     return coir::http::run({.handler = hello}, std::move(*listener), {SIGTERM, SIGINT}) ? 0 : 1;
//   }
//
// Each serves what `listener` accepts until one of `signals` is sent to the process, and then drains as
// Server::serve_until does: idle connections are closed, requests in progress end, for at most `drain_timeout`. SIGHUP,
// where it is among them, calls ServerOptions::on_hangup. With `tls`, which outlives the call, connections begin with a
// handshake. The value is how many connections were cut off. Errors: invalid (the options, as Server::create judges
// them, or a signal that there is not), no_memory, limit (no descriptor is left), system.
//
// On threads a handler runs as on a fiber: the same Exchange, the same deadlines. Of ServerOptions max_connections,
// max_active, max_handshakes and evict_after say nothing there, as a thread has one connection at a time. account::http
// is charged 28 KB for each thread, account::connections for each connection.

// run serves on the calling thread, one request at a time. In a build with fibers a signal is noticed between two
// requests, and a request in progress is ended by its own timeouts only. Errors: invalid, no_memory, limit, system;
// unsupported (max_active over 1 in a build without fibers).
[[nodiscard]] std::expected<std::size_t, Error> run(const ServerOptions& options, TcpListener&& listener,
                                                    std::initializer_list<int> signals,
                                                    std::chrono::milliseconds drain_timeout = std::chrono::seconds(10),
                                                    TlsContextSlot* tls = nullptr) noexcept;

// run_pool serves on `threads` threads; the calling one waits for signals. A client that connects while each thread has a
// connection waits in the backlog until one ends. A thread has 256 KB of stack and ServerOptions::handler_stack
// besides, resident as far as they are used. Errors: invalid, no_memory, system; unsupported (a build with one worker
// or without fibers), limit (no descriptor or no thread is left).
[[nodiscard]] std::expected<std::size_t, Error> run_pool(
    std::size_t threads, const ServerOptions& options, TcpListener&& listener, std::initializer_list<int> signals,
    std::chrono::milliseconds drain_timeout = std::chrono::seconds(10), TlsContextSlot* tls = nullptr) noexcept;

}  // namespace coir::http
