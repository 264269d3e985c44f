#pragma once

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/port/needs_fibers.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "tests/support/faults.h"
#include "tests/support/receive_head.h"
#include "tests/support/scale.h"
#include "tests/unit/http/faults_server.h"

namespace coir::test {

// StreamPeer is a client's side of a connection that stays open: a blocking socket, so that nothing of coir is on this
// side. Once a call has failed all others do.
class StreamPeer {
 public:
  explicit StreamPeer(std::uint16_t port, int receive_buffer = 0)
      : port_(port), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = kPatienceSeconds, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    // Small pieces are to be sent at once: else each waits 40 ms for the acknowledgement of the one before.
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_buffer != 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    alive_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~StreamPeer() { ::close(fd_); }
  StreamPeer(const StreamPeer&) = delete;
  StreamPeer& operator=(const StreamPeer&) = delete;

  bool say(std::string_view bytes) {
    if (alive_ && ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) alive_ = false;
    return alive_;
  }

  // hears_head tells whether the head of an answer with this status comes next.
  bool hears_head(std::string_view status) {
    have_ = 0;
    if (alive_) note(receive_head(fd_, heard_));
    const bool right = alive_ && have_ > 9 && heard().substr(9).starts_with(status);
    have_ = 0;
    return right;
  }

  // hears tells whether these bytes come next. finds drops what comes before them.
  bool hears(std::string_view bytes) {
    have_ = 0;
    while (alive_ && have_ < bytes.size()) hear(bytes.size() - have_);
    return alive_ && heard() == bytes;
  }
  bool finds(std::string_view bytes) {
    for (;;) {
      // Not string_view's, which stops at each byte that equals the first: most of what comes is one letter.
      if (const void* const at = memmem(heard_, have_, bytes.data(), bytes.size()); at != nullptr) {
        const char* const behind = static_cast<const char*>(at) + bytes.size();
        have_ -= static_cast<std::size_t>(behind - heard_);
        memmove(heard_, behind, have_);
        return true;
      }
      if (!alive_) return false;
      if (const std::size_t kept = std::min(have_, bytes.size()); have_ > sizeof heard_ / 2) {
        memmove(heard_, heard_ + have_ - kept, kept);
        have_ = kept;
      }
      hear(sizeof heard_ - have_);
    }
  }
  // ends drops all that still comes, and tells whether the connection ends in good order.
  bool ends() {
    while (alive_) {
      have_ = 0;
      hear(sizeof heard_);
    }
    return in_order_;
  }

  // tell prints how the connection has ended, and what came last.
  void tell(const char* when) const {
    fprintf(stderr, "the client's connection ended %s, errno %d, behind", when, error_);
    for (const char each : heard()) fprintf(stderr, " %02x", static_cast<unsigned char>(each));
    fprintf(stderr, "\n");
  }

  // late: the other side has left this one waiting.
  bool late() const { return late_; }
  std::uint16_t port() const { return port_; }

 private:
  std::string_view heard() const { return {heard_, have_}; }
  void hear(std::size_t bytes) {
    if (have_ + bytes > sizeof heard_) have_ = 0;
    note(::recv(fd_, heard_ + have_, bytes, 0));
  }
  // note adds what was received, or how the connection has ended.
  void note(ssize_t got) {
    if (got > 0) {
      have_ += static_cast<std::size_t>(got);
      return;
    }
    alive_ = false;
    in_order_ = got == 0;
    error_ = got < 0 ? errno : 0;
    late_ = error_ == EAGAIN;
  }

  const std::uint16_t port_;
  const int fd_;
  bool alive_ = false, late_ = false, in_order_ = false;
  int error_ = 0;
  std::size_t have_ = 0;
  char heard_[8192];
};

// StreamLife is what a client of streams does. `opens` has come to where its stream rests; `goes_on` is the rest, up to
// the end. Each tells whether all went as it should.
struct StreamLife {
  const char* name;
  bool (*opens)(StreamPeer& peer);
  bool (*goes_on)(StreamPeer& peer);
  int receive_buffer = 0;
};

struct StreamFault {
  Call call;
  int error;
};

// kStreamFaults are a refused charge, and what the kernel may say to a server of streams.
inline constexpr StreamFault kStreamFaults[] = {
    {Call::charge, 0},          {Call::accept4, EMFILE},    {Call::close, EINTR},       {Call::epoll_ctl, ENOMEM},
    {Call::epoll_ctl, ENOSPC},  {Call::epoll_wait, EINTR},  {Call::eventfd, EMFILE},    {Call::madvise, ENOSYS},
    {Call::mmap, ENOMEM},       {Call::mprotect, ENOMEM},   {Call::poll, ENOMEM},       {Call::ppoll, ENOMEM},
    {Call::recv, ENOMEM},       {Call::recv, ECONNRESET},   {Call::send, ENOBUFS},      {Call::send, ECONNRESET},
    {Call::send, EPIPE},        {Call::sendmsg, ENOMEM},    {Call::sendmsg, EPIPE},     {Call::setsockopt, ENOBUFS},
    {Call::shutdown, ENOTCONN}, {Call::sendmsg, ETIMEDOUT}, {Call::recv, EHOSTUNREACH},
};

// FaultyStreams is the group of tests of a server of streams whose calls fail.
class FaultyStreams : public FaultyServer {
 protected:
  static constexpr Setting kSettings[] = {{2, false}, {1, true}};
  static constexpr std::size_t kTried =
      scaled({.plain = 2, .address_sanitized = 1, .thread_sanitized = 1, .emulated = 1});
  unsigned failed_calls[kCalls] = {};

  // kept is how many streams the program still keeps.
  virtual std::size_t kept() const = 0;

  bool lives(const StreamLife& life) {
    StreamPeer peer(port, life.receive_buffer);
    const bool opened = life.opens(peer);
    const bool whole = opened && life.goes_on(peer);
    require(!peer.late(), "is left waiting");
    if (!whole && failures() == 0) peer.tell(opened ? "after it has opened" : "while it opens");
    return whole;
  }

  // try_every lets each call of a kind fail once while one client lives.
  void try_every(const StreamFault& kind, const StreamLife& life, const Left& before) {
    stage = life.name;
    for (unsigned nth = 1;; ++nth) {
      fault = {.call = kind.call, .error = kind.error, .nth = nth};
      inject(fault);
      const bool whole = lives(life);
      require(whole || failures() != 0, "is cut short though nothing failed");
      require(quiet(), "stays connected");
      const unsigned failed = withdraw();
      failed_calls[static_cast<unsigned>(kind.call)] += failed;
      require(until([this] { return kept() == 0; }, Deadline::after(60s)), "is kept for ever");
      if (failed != 0) require(lives(life), "does not live afterwards");
      require(is_as_before(before), "leaves something behind");
      if (failed == 0) return;
      require(nth < 1000, "never comes to an end");
    }
  }

  // whatever_fails tries each kind in each life.
  void whatever_fails(std::span<const StreamLife> all) {
    for (const Setting& each : std::span(kSettings).first(kTried)) {
      setting = each;
      fault = {};
      CHECK(begin());
      for (const StreamLife& life : all) {
        stage = life.name;
        require(lives(life), "does not live though nothing fails");
      }
      CHECK(quiet());
      const Left before = rest();
      for (const StreamLife& life : all) {
        for (const StreamFault& kind : kStreamFaults) try_every(kind, life, before);
      }
      end();
      require(clean_end, "cuts somebody off");
      nothing_is_left();
    }
  }

  // a_stop_while_something_fails ends a server, over and over, beside a client whose stream rests.
  void a_stop_while_something_fails(std::span<const StreamLife> all) {
    for (const Setting& each : std::span(kSettings).first(kTried)) {
      setting = each;
      for (const StreamLife& life : all) {
        stage = life.name;
        for (const StreamFault& kind : kStreamFaults) {
          for (unsigned nth = 1;; ++nth) {
            fault = {.call = kind.call, .error = kind.error, .nth = nth};
            CHECK(begin());
            StreamPeer peer(port, life.receive_buffer);
            require(life.opens(peer), "does not open though nothing fails");
            inject(fault);
            end();
            const unsigned failed = withdraw();
            static_cast<void>(peer.ends());
            require(!peer.late(), "is left waiting by the stop");
            require(clean_end, "is cut off by the stop");
            nothing_is_left();
            if (failed == 0) break;
            require(nth < 1000, "never stops");
          }
        }
      }
    }
  }

  void met(std::initializer_list<Call> calls) const {
    for (const Call call : calls) {
      if (failed_calls[static_cast<unsigned>(call)] == 0) FAIL(name_of(call));
    }
  }
};

}  // namespace coir::test
