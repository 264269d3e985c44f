#pragma once

#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/tcp.h>

#include "http/concurrent/dispatcher.h"
#include "http/concurrent/evictor.h"

namespace coir::http {

// Acceptor accepts connections, by a fiber for each listener, and puts them to rest.
class Acceptor {
 public:
  Acceptor(Engine& engine, Dispatcher& dispatcher, Evictor& evictor) noexcept
      : engine_(engine), dispatcher_(dispatcher), evictor_(evictor) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // add and remove are Server's functions of the same names.
  std::expected<std::size_t, Error> add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept;
  void remove(std::size_t number) noexcept;
  // start spawns the fibers. False: there is no stack for one of them.
  bool start() noexcept;
  // cancel has the fibers close their listeners and end; alive tells whether one has not ended.
  void cancel() noexcept;
  bool alive() const noexcept;

 private:
  // Listening is one listener, what its connections begin with, and the fiber that accepts them.
  struct Listening {
    TcpListener listener;
    TlsContextSlot* tls = nullptr;
    std::uint8_t mark = 0;
    FiberRef fiber = {};
    Event ended;  // set by the fiber as the last that it does here
  };

  bool start(Listening& listening) noexcept;
  void let_in(Listening& from) noexcept;
  void accept_all(Listening& from) noexcept;
  bool await_memory() noexcept;
  void admit(TcpStream&& stream, const Listening& from) noexcept;

  Engine& engine_;
  Dispatcher& dispatcher_;
  Evictor& evictor_;
  bool started_ = false;
  Listening listening_[Server::kMaxListeners];  // a closed listener leaves its place to the next
};

}  // namespace coir::http
