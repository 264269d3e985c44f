#include "control.h"

#if !COIR_NO_ASYNC

#include <coir/deadline.h>
#include <coir/ledger.h>
#include <coir/net/log_line.h>
#include <coir/stack_size.h>
#include <coir/trace.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "../complaint.h"
#include "../daemon.h"
#include "memory.h"
#include "request.h"

using namespace std::chrono_literals;
using coir::operator""_KiB;

namespace {

constinit coir::Account g_account("control");

constexpr std::string_view kProtocol = "1";

// may_steer tells whether the peer is root or coird's own user.
bool may_steer(const coir::TcpStream& client) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(client.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

// read_line reads a request; empty: it did not come in time, or is too long.
std::string_view read_line(coir::TcpStream& client, std::span<char> into) noexcept {
  const coir::Deadline deadline = coir::Deadline::after(2s);
  std::size_t filled = 0;
  while (filled < into.size()) {
    const auto size = client.read(into.subspan(filled), deadline);
    if (!size) break;
    filled += *size;
    const std::string_view text(into.data(), filled);
    if (const std::size_t end = text.find('\n'); end != text.npos) return text.substr(0, end);
  }
  return {};
}

constexpr std::string_view kMayNotSteer =
    "not permitted: the group of --control-readers reads; root and coird's own user steer";

std::string_view next_word(std::string_view& line) noexcept {
  const std::size_t size = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(std::min(size + 1, line.size()));
  return word;
}

}  // namespace

Control::Request::Request(std::string_view line) noexcept
    : protocol(next_word(line)),
      verb(next_word(line)),
      form(next_word(line)),
      name(next_word(line)),
      word(next_word(line)) {}

Control::~Control() {
  if (memory_ == nullptr) return;
  free(memory_);
  g_account.refund(sizeof(Memory));
}

bool Control::open(const Options& options, const Identity& identity) noexcept {
  if (options.control == nullptr) return true;
  constexpr const char* kPathCure = "name a path in a folder that coird can write, such as /run/coird.sock";
  const char* const path = options.control;
  char name[128];
  const auto at = coir::Address::parse(coir::format(name, "unix:", path));
  if (!at) return options.wrong("control", path, kPathCure, {at.error()});
  // Nothing else runs yet that makes files.
  const mode_t before = ::umask(identity.readers ? 0117 : 0177);
  auto listener = coir::TcpListener::listen(*at, {.backlog = 8});
  ::umask(before);
  if (!listener) return options.wrong("control", path, kPathCure, {listener.error()});
  // The user that coird becomes asks, too. In a folder of that user's the name may be a link by now.
  const auto give = [&](uid_t user, gid_t group) {
    return ::fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW) == 0;
  };
  if (identity.changes && !give(identity.user, identity.group))
    return options.wrong("control", path, kPathCure, {coir::Error::from_errno(errno)});
  if (identity.readers && !give(static_cast<uid_t>(-1), *identity.readers))
    return options.wrong("control-readers", options.control_readers, "start coird as root, or as one of the group",
                         {coir::Error::from_errno(errno)});
  void* const room = g_account.charge(sizeof(Memory)) ? malloc(sizeof(Memory)) : nullptr;
  if (room == nullptr) return options.wrong("control", path, "give coird more memory", {"there is no memory for it"});
  memory_ = ::new (room) Memory;
  path_ = path;
  listener_ = std::move(*listener);
  has_readers_ = identity.readers.has_value();
  coir::keep_log_lines(true);
  return true;
}

void Control::start(Daemon& daemon) noexcept {
  if (path_ == nullptr) return;
  daemon_ = &daemon;
  began_ns_ = coir::monotonic_ns();
  fiber_ = coir::spawn({.name = "control", .stack = 16_KiB}, [this] { serve(); });
  if (!fiber_.started()) warn({"--control ", path_, ": ", fiber_.error()});
}

void Control::stop() noexcept {
  if (path_ == nullptr) return;
  listener_.close();
  if (!fiber_.started()) return;
  static_cast<void>(fiber_.cancel());
  static_cast<void>(fiber_.join());
}

void Control::serve() noexcept {
  static_cast<void>(coir::accept_each(listener_, [this](coir::TcpStream client) { serve(std::move(client)); }));
}

void Control::serve(coir::TcpStream client) noexcept {
  char words[128], head[320];
  std::string_view fault, text;
  const bool steers = may_steer(client);
  const Request request(steers || has_readers_ ? read_line(client, words) : std::string_view());
  if (request.verb.empty()) {
    fault = steers || has_readers_ ? "a request is one line, and comes within two seconds"
                                   : "not permitted: it is for root and for coird's own user";
  } else if (request.protocol != kProtocol) {
    fault = "another version of the protocol";
  } else {
    text = answer(request, steers, fault);
  }
  const coir::Deadline deadline = coir::Deadline::after(5s);
  const std::string_view result =
      coir::format(head, "coird ", kProtocol, " " COIR_VERSION " ", fault.empty() ? "ok" : "error ", fault, "\n");
  if (!client.write(result, deadline) || !client.write(text, deadline) || !fault.empty()) return;
  if (request.verb == "stop") waits_for_end_ = std::move(client);
  if (request.verb == "trace") send_trace(client);
}

std::string_view Control::answer(const Request& request, bool steers, std::string_view& fault) noexcept {
  struct Reading {
    std::string_view verb;
    std::string_view (Control::*tell)(bool json) noexcept;
  };
  static constexpr Reading kReadings[] = {
      {"status", &Control::tell_status}, {"top", &Control::tell_top},       {"connections", &Control::tell_connections},
      {"memory", &Control::tell_memory}, {"fibers", &Control::tell_fibers}, {"stacks", &Control::tell_stacks},
      {"routes", &Control::tell_routes}, {"pins", &Control::tell_pins}};
  const std::string_view verb = request.verb;
  if (verb == "log") return request.form.starts_with("follow") ? tell_log_since(request) : tell_log(request);
  if (verb == "pins" && !request.name.empty()) {
    if (steers || request.word == "read") return use_pin(request, fault);
    fault = kMayNotSteer;
    return {};
  }
  for (const Reading& each : kReadings) {
    if (verb != each.verb) continue;
    const std::string_view text = (this->*each.tell)(request.json());
    if (text.empty()) fault = "the answer is too long";
    return text;
  }
  if (verb == "trace") {
    if (!coir::tracing()) fault = "this coird was built without tracing (scripts/build --trace)";
  } else if (verb != "reload" && verb != "drain" && verb != "stop") {
    fault = "no such verb";
  } else if (!steers) {
    fault = kMayNotSteer;
  } else {
    steer(verb, fault);
    if (verb == "stop" && fault.empty()) return tell_end();
  }
  return {};
}

void Control::steer(std::string_view verb, std::string_view& fault) noexcept {
  if (verb == "reload") {
    say({"--control: reload"});
    if (daemon_->drains.load()) {
      fault = "coird ends already";
    } else if (!reload(*daemon_)) {
      fault = "the old configuration stays (coirctl log tells why)";
    }
    return;
  }
  if (verb == "stop" && waits_for_end_.is_open()) {
    fault = "coird ends already, and another coirctl waits for that";
    return;
  }
  if (drain(*daemon_)) say({"--control: ", verb});
}

#else

#include "../complaint.h"

Control::~Control() = default;

bool Control::open(const Options& options, const Identity&) noexcept {
  if (options.control != nullptr) say({"--control: this coird was built without fibers: nothing answers coirctl"});
  return true;
}

void Control::start(Daemon&) noexcept {}
void Control::stop() noexcept {}

#endif
