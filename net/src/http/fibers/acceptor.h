#pragma once

#include <coir/fiber.h>
#include <coir/tcp.h>

#include "http/fibers/dispatcher.h"
#include "http/fibers/evictor.h"

namespace coir::http {

// Acceptor accepts connections, by a fiber for each listener, and puts them to rest.
class Acceptor {
 public:
  Acceptor(Engine& engine, Dispatcher& dispatcher, Evictor& evictor) noexcept
      : engine_(engine), dispatcher_(dispatcher), evictor_(evictor) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // add is Server's function of the same name.
  std::expected<void, Error> add(TcpListener&& listener, TlsContextSlot* tls) noexcept;
  // start spawns the fibers. False: there is no stack for one of them.
  bool start() noexcept;
  // cancel has the fibers close their listeners and end; alive tells whether one has not ended.
  void cancel() noexcept;
  bool alive() const noexcept;

 private:
  void accept_all(std::size_t number) noexcept;
  bool await_memory() noexcept;
  void admit(TcpStream&& stream, std::size_t number) noexcept;

  Engine& engine_;
  Dispatcher& dispatcher_;
  Evictor& evictor_;
  std::size_t count_ = 0;
  TcpListener listeners_[Server::kMaxListeners];
  TlsContextSlot* tls_[Server::kMaxListeners] = {};  // of each listener, or null
  FiberRef fibers_[Server::kMaxListeners];
};

}  // namespace coir::http
