#pragma once

#include <coir/config.h>

#include <string_view>

#include "../identity.h"
#include "../options/options.h"

#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/tcp.h>
#endif

class ControlAnswer;
struct Daemon;

// Control answers coirctl on the Unix socket of --control, of mode 0600: root and coird's own user are served, as the
// kernel tells who they are. With --control-readers the mode is 0660, and others that may connect read, but do not steer. A
// request is one line, "1 VERB text" or "1 VERB json"; 1 is the number of this protocol. The answer is a line, "coird 1
// VERSION ok" or "coird 1 VERSION error WHY", then the text, then the end. "1 log text LEVEL" is for lines that matter
// so much, "1 log follow N LEVEL", or follow-json, for those from number N on, "1 pins text NAME read", on or off, for
// one pin. Behind the trace are a NUL and the number of its bytes, if all of it was sent.
//
// It is no part of the HTTP server, so that it works when that refuses everybody: one fiber of its own takes one request
// after the other, in memory that account "control" and the stacks' account are charged for at the start. A client has
// two seconds for its request and five for the answer. A build without fibers says that nothing answers, and
// serves: the init scripts name the option for every build.
class Control {
 public:
  Control() noexcept = default;
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  // open binds the socket and reserves the memory, before coird gives up its privileges. False: a line has said why, and nothing
  // answers.
  [[nodiscard]] bool open(const Options& options, const Identity& identity) noexcept;
  // start answers from now on, from a fiber. `daemon` outlives this.
  void start(Daemon& daemon) noexcept;
  // stop removes the socket. A client of `coirctl stop` hears the end of its connection from the destructor.
  void stop() noexcept;

#if !COIR_NO_ASYNC
 private:
  struct Request;

  void serve() noexcept;
  void serve(coir::TcpStream client) noexcept;
  std::string_view answer(const Request& request, bool steers, std::string_view& fault) noexcept;
  std::string_view tell_status(bool json) noexcept;
  std::string_view tell_connections(bool json) noexcept;
  std::string_view tell_memory(bool json) noexcept;
  std::string_view tell_fibers(bool json) noexcept;
  std::string_view tell_log(const Request& request) noexcept;
  std::string_view tell_log_since(const Request& request) noexcept;
  std::string_view tell_routes(bool json) noexcept;
  std::string_view tell_stacks(bool json) noexcept;
  std::string_view tell_top(bool json) noexcept;
  std::string_view tell_end() noexcept;
  void add_status(ControlAnswer& answer) noexcept;
  void steer(std::string_view verb, std::string_view& fault) noexcept;
  void send_trace(coir::TcpStream& client) noexcept;
  std::string_view tell_pins(bool json) noexcept;
  std::string_view use_pin(const Request& request, std::string_view& fault) noexcept;

  const char* path_ = nullptr;
  Daemon* daemon_ = nullptr;
  struct Memory;
  Memory* memory_ = nullptr;
  coir::TcpListener listener_;
  coir::TcpStream waits_for_end_;
  bool has_readers_ = false;
  std::int64_t began_ns_ = 0;
  coir::Fiber fiber_;
#endif
};
