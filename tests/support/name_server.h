#pragma once

#include <atomic>

namespace coir::test {

// NameServer is a DNS server on port 53 of 127.0.0.1 and 127.0.0.2 that its process's resolver asks, in a network and a mount name space of
// their own: /etc/resolv.conf and /etc/hosts of the machine stay as they are. For a child process that runs no other
// thread yet, and ends with it. It answers, by a name's first label:
//
//   both     192.0.2.7 and 2001:db8::7            many     twenty IPv4 addresses
//   missing  that there is no such name           broken   that the server failed
//   silent   nothing, ever                        garbage  bytes that are no answer
//   pair     127.0.0.2 and 127.0.0.3              alias    a name that stands for another, at 192.0.2.8
//   circle   a name that stands for itself        refused  that it will not say
//   long     by UDP that the answer is cut off, by TCP twenty addresses
//   walled   from 127.0.0.1 that the answer is cut off, and by TCP nothing; from 127.0.0.2 192.0.2.7
//   forged   an answer to another question and one with another number, both wrong; then 192.0.2.7
//   second   from 127.0.0.2 alone                 brief    192.0.2.7, for this moment only
//   absent   that there is no such name, for a minute
//   near     192.0.2.7 below "example", elsewhere that there is no such name
//   moving   127.0.0.2, and 127.0.0.3 behind `move`, for three seconds each
//   half2    for IPv6 at first that the server failed (2; or another code), then 192.0.2.7; half2s: nothing more
//   late     192.0.2.9, but not between `hold` and `release`
//
// /etc/hosts knows "board" as 192.0.2.1.
class NameServer {
 public:
  static constexpr const char* kConf = "nameserver 127.0.0.1\noptions timeout:10 attempts:2\n";

  // start returns null, or why it cannot be on this machine. `conf` becomes /etc/resolv.conf.
  const char* start(const char* conf = kConf) noexcept;
  void hold() noexcept { released_.store(false, std::memory_order_release); }
  void release() noexcept { released_.store(true, std::memory_order_release); }
  void move() noexcept { moved_.store(true, std::memory_order_release); }
  // silence has it answer nothing any more.
  void silence() noexcept { silent_.store(true, std::memory_order_release); }
  int asked() const noexcept { return asked_.load(std::memory_order_acquire); }

 private:
  static void* serve_first(void* server) noexcept;
  static void* serve_second(void* server) noexcept;
  static void* serve_by_tcp(void* server) noexcept;
  void serve(int socket, bool first) noexcept;
  int answer(unsigned char* packet, int bytes, bool by_tcp) noexcept;

  int sockets_[2] = {-1, -1}, listener_ = -1;
  std::atomic<bool> released_{true}, moved_{false}, silent_{false};
  std::atomic<int> asked_{0};
};

}  // namespace coir::test
