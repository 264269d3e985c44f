#pragma once

#include "http/concurrent/acceptor.h"
#include "http/concurrent/dispatcher.h"
#include "http/concurrent/evictor.h"
#include "http/concurrent/reaper.h"
#include "http/session/engine.h"

namespace coir::http {

// FiberEngine is the engine of a build with fibers, made of four parts. It lies at the start of one reserved mapping,
// followed by the array of connections and the array of sessions, both of which are touched only as far as they are
// used.
//
//   acceptor     accepts connections                 dispatcher   has fibers serve those whose clients send something
//   evictor      makes room                          reaper       closes those whose time is over
class FiberEngine : public Engine {
 public:
  static FiberEngine* create(const ServerOptions& options, Mode mode) noexcept;
  static void destroy(FiberEngine* engine) noexcept;

  // drain.cpp: these are Server's functions of the same names.
  void begin_stop() noexcept;
  bool stopped() noexcept;
  std::expected<void, Error> stop(Deadline deadline) noexcept;
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  // cut_off ends every wait and returns how many connections are left.
  std::size_t cut_off() noexcept;

  // peer_of is Engine's.
  std::expected<Address, Error> peer_of(Connection& connection) noexcept;

  Dispatcher dispatcher;
  Evictor evictor;
  Acceptor acceptor;
  Reaper reaper;

 private:
  FiberEngine(const ServerOptions& given, Mode mode, Connection* connections, SessionBuffers* buffers,
              std::uint32_t* freed_buffers, std::uint64_t* peers, std::span<pthread_t> threads,
              std::size_t mapped_bytes) noexcept
      : Engine(given, mode == Mode::fibers),
        dispatcher(*this, connections, buffers, freed_buffers, threads),
        evictor(*this, dispatcher),
        acceptor(*this, dispatcher, evictor),
        reaper(*this, dispatcher, evictor),
        connections_(connections),
        peers_(peers),
        mapped_bytes_(mapped_bytes) {}

  Connection* const connections_;
  std::uint64_t* const peers_;  // of each connection that knows it: the IPv4 address and the port of its client
  const std::size_t mapped_bytes_;
  Atomic<std::int64_t> heads_end_ns_ = 0;  // when a stopping server waits for no head any more; 0: it does not stop
};

}  // namespace coir::http
