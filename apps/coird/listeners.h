#pragma once

#include <coir/atomic.h>
#include <coir/http/server.h>
#include <coir/tcp.h>

#include "announcing.h"
#include "options/options.h"

// OpenedListeners holds a listener for each address of Options that was not bound before. Its destructor closes those
// that no server has taken.
struct OpenedListeners {
  coir::TcpListener at[coir::http::Server::kMaxListeners];
  bool serves[coir::http::Server::kMaxListeners] = {};  // the server has taken the one of `at`
  std::size_t number[coir::http::Server::kMaxListeners] = {};
  coir::Address bound[coir::http::Server::kMaxListeners];
  bool released[coir::http::Server::kMaxListeners] = {};  // of those that serve: closed to make way for one of `at`
};

// Listeners is where coird listens. A change has three steps, so that a reload applies completely or not at all: open
// binds what is new, serve hands that to the server, and settle closes what the options no longer name. Until settle,
// take_back undoes the others. An address that stays keeps its listener, and a connection outlives the listener that
// accepted it.
class Listeners {
 public:
  // kMetrics is the mark of a listener for /metrics and /healthz alone (Exchange::listener).
  static constexpr std::uint8_t kMetrics = 1;

  // open binds each address of `options` that is not bound yet. An address that changes between plain, TLS and metrics,
  // and the first one with TLS of a coird that serves, wait for a restart. An address that another one
  // with the same port covers, such as *:80 and 127.0.0.1:80, cannot be bound beside that: `server` closes the old one
  // first, when all others are bound. False: an address cannot be bound; a line has said which, and all is as it was.
  // take_back makes it so after a success. In safe mode such an address is left out, and the default one is the last resort.
  [[nodiscard]] bool open(const Options& options, OpenedListeners& opened, coir::http::Server* server = nullptr,
                          coir::TlsContextSlot* tls = nullptr) noexcept;
  void take_back(const Options& options, OpenedListeners& opened, coir::http::Server& server,
                 coir::TlsContextSlot* tls) noexcept;

  // serve has `server`, which has started, accept by what open has bound. If more listeners would serve than the server has
  // places for, some that `options` no longer name are closed first. False: there is no memory for one; a line has said so,
  // and all is as it was. In a build with fibers: from a fiber.
  [[nodiscard]] bool serve(const Options& options, OpenedListeners& opened, coir::http::Server& server,
                           coir::TlsContextSlot* tls) noexcept;

  // settle, behind serve, closes what `options` no longer name. A line names each address, with the port that the kernel
  // chose, and each that waits for a restart. It cannot fail. In a build with fibers: from a fiber.
  void settle(const Options& options, OpenedListeners& opened, coir::http::Server& server) noexcept;

  // ports is what multicast DNS announces: those of the listeners that the first call of settle left.
  const Announced& ports() const noexcept { return ports_; }
  // metrics_apart tells whether /metrics is answered by listeners for it alone. Any fiber or thread.
  bool metrics_apart() const noexcept { return metrics_apart_.load(); }

 private:
  static constexpr std::size_t kMost = coir::http::Server::kMaxListeners;

  struct Serving {
    Options::Listen at;
    coir::Address bound;  // with the port that the kernel chose
    bool used = false;
    std::size_t number = 0;  // by which the server knows it
  };

  // Match says for each address of Options which of serving_ it is, or kNew or kNextStart.
  static constexpr std::size_t kNew = kMost, kNextStart = kMost + 1;
  struct Match {
    std::size_t of[kMost];
    bool stays[kMost] = {};  // of serving_
  };
  Match match(const Options& options) const noexcept;
  void release(const Match& found, const coir::Address& wanted, OpenedListeners& opened,
               coir::http::Server& server) noexcept;
  bool is_in_the_way(const Match& found, std::size_t k, const coir::Address& wanted) const noexcept;

  Serving serving_[kMost];
  bool serves_ = false;
  bool tls_ = false;  // one has TLS
  Announced ports_;
  coir::Atomic<bool> metrics_apart_ = false;
};
