#pragma once

// One handler on one listener, with a fiber for each request, until a signal comes.
//
//   int main() {
//     auto listener = coir::TcpListener::listen(*coir::Address::parse(":8080"));
//     if (!listener) return 1;
//     const auto hello = [](coir::http::Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); };
//     return coir::http::run_async({.handler = hello}, std::move(*listener), {SIGTERM, SIGINT}) ? 0 : 1;
//   }

#include <coir/port/needs_fibers.h>

#include <coir/http/run.h>
#include <coir/run_options.h>

namespace coir::http {

// run_async runs the runtime and serves by a Server on it: the third of the ways of coir/http/run.h, whose parameters
// it has. From a plain thread, usually main's. Errors: as run; those of run_until_idle (coir/runtime.h).
[[nodiscard]] std::expected<std::size_t, Error> run_async(
    const ServerOptions& options, TcpListener&& listener, std::initializer_list<int> signals,
    std::chrono::milliseconds drain_timeout = std::chrono::seconds(10), TlsContextSlot* tls = nullptr,
    const RunOptions& runtime = {}) noexcept;

}  // namespace coir::http
