#pragma once

#include <coir/format.h>
#include <coir/http/exchange.h>
#include <coir/http/server.h>
#include <coir/worker_stack.h>

#include <string_view>

// LocalSite is a server in the program itself, so that examples need no network. It answers a path by the path, unless
// `options` have another handler.
class LocalSite {
 public:
  explicit LocalSite(const coir::http::ServerOptions& options = {.handler = answer_by_path},
                     coir::http::Mode mode = coir::http::Mode::fibers) {
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    if (!listener) return;
    port_ = listener->local_address().port();
    auto made = coir::http::Server::create(options, mode);
    if (!made || !made->add(std::move(*listener)) || !made->start()) return;
    server_.emplace(std::move(*made));
  }
  ~LocalSite() {
    if (server_) static_cast<void>(server_->stop(coir::Deadline::after(std::chrono::seconds(1))));
  }

  // url is an address below this site, valid until the fourth call after it. One caller at a time.
  std::string_view url(std::string_view path, const char* scheme = "http") const {
    static char texts[4][64];
    static unsigned next = 0;
    return coir::format(texts[next++ % 4], scheme, "://127.0.0.1:", port_, path);
  }
  std::uint16_t port() const { return port_; }

 private:
  static void answer_by_path(coir::http::Exchange& exchange) {
    exchange.respond(200, "text/plain", exchange.request().path);
  }

  std::optional<coir::http::Server> server_;
  std::uint16_t port_ = 0;
};
