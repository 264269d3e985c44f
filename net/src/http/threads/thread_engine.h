#pragma once

#include <coir/http/server.h>
#include <coir/mutex.h>
#include <coir/tcp.h>
#include <coir/wait_group.h>
#include <pthread.h>

#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>

#include "http/session/connection.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

// ThreadEngine is the engine of run and run_pool in a build with fibers: each place is a plain thread, which accepts a
// connection, serves it until it ends, and accepts the next. A wait blocks the thread. A connection that rests
// keeps its place; the one place of run is given up when another client waits.
class ThreadEngine : public Engine {
 public:
  // create reserves `places` and charges for them. Null: there is no memory.
  static ThreadEngine* create(const ServerOptions& options, std::size_t places, TcpListener&& listener,
                              TlsContextSlot* tls) noexcept;
  static void destroy(ThreadEngine* engine) noexcept;

  // serve_here serves on the calling thread until a signal comes. Errors: those of catch_signals.
  std::expected<void, Error> serve_here(std::initializer_list<int> signals) noexcept;
  // serve_on_threads serves on a thread for each place, and waits for a signal. Errors: those of catch_signals, limit
  // (a thread could not be started; those that were have ended).
  std::expected<std::size_t, Error> serve_on_threads(std::initializer_list<int> signals,
                                                     std::chrono::milliseconds drain_timeout) noexcept;

  // For until_signal.
  void begin_stop() noexcept;
  bool stopped() noexcept { return running_.count() == 0; }
  std::size_t cut_off() noexcept;

 private:
  // Place is what one thread has.
  struct Place : Connection {
    explicit Place(Session* its_session, ThreadEngine& its_engine) noexcept : session(its_session) {
      engine = &its_engine;
    }
    Session* session;
    pthread_t thread{};
    // guard holds while the descriptor is shut down by another thread, or closed by its own.
    Mutex guard;
    bool open = false;
    bool rests = false;
  };

  ThreadEngine(const ServerOptions& given, std::span<Place> places, TcpListener&& listener,
               TlsContextSlot* tls) noexcept
      : Engine(given, &kCalls), places_(places), listener_(std::move(listener)), tls_(tls) {}

  static const ThreadCalls kCalls;
  static ThreadEngine& of(Engine& engine) noexcept { return static_cast<ThreadEngine&>(engine); }
  static Place& place_of(Connection& connection) noexcept { return static_cast<Place&>(connection); }

  void serve_place(Place& place) noexcept;
  std::expected<TcpStream, Error> accept_next() noexcept;
  void serve_connection(Place& place, TcpStream&& stream) noexcept;
  bool rest_here(Place& place) noexcept;
  bool rest_on_thread(Place& place) noexcept;
  void end(Place& place) noexcept;
  Deadline resting_deadline(const Connection& connection) const noexcept;
  void take_signal() noexcept;
  void pause() noexcept;

  const std::span<Place> places_;
  TcpListener listener_;
  TlsContextSlot* const tls_;
  bool alone_ = false;                       // run: it looks for newcomers and signals itself
  std::initializer_list<int> signals_ = {};  // alone
  Mutex accepting_;                          // of many threads one waits for the next connection
  WaitGroup running_;
};

}  // namespace coir::http
