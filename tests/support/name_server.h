#pragma once

#include <atomic>

namespace coir::test {

// NameServer is a DNS server on 127.0.0.1:53 that its process's resolver asks, in a network and a mount name space of
// their own: /etc/resolv.conf and /etc/hosts of the machine stay as they are. For a child process that runs no other
// thread yet, and ends with it. It answers, by a name's first label:
//
//   both     192.0.2.7 and 2001:db8::7            many     twenty IPv4 addresses
//   missing  that there is no such name           broken   that the server failed
//   silent   nothing, ever                        garbage  bytes that are no answer
//   pair     127.0.0.2 and 127.0.0.3
//   late     192.0.2.9, but not between `hold` and `release`
//
// /etc/hosts knows "board" as 192.0.2.1.
class NameServer {
 public:
  // start returns null, or why it cannot be on this machine.
  const char* start() noexcept;
  void hold() noexcept { released_.store(false, std::memory_order_release); }
  void release() noexcept { released_.store(true, std::memory_order_release); }
  int asked() const noexcept { return asked_.load(std::memory_order_acquire); }

 private:
  static void* serve(void* server) noexcept;
  int answer(unsigned char* packet, int bytes) noexcept;

  int socket_ = -1;
  std::atomic<bool> released_{true};
  std::atomic<int> asked_{0};
};

}  // namespace coir::test
