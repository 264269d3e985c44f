#include "name_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coir::test {

namespace {

constexpr int kHeader = 12, kPacket = 512;
constexpr unsigned kTypeA = 1, kTypeAaaa = 28;

// put_over makes `text` what the child reads at `path`.
bool put_over(const char* path, const char* text) noexcept {
  char made[] = "/tmp/coir-name-server.XXXXXX";
  const int fd = mkstemp(made);
  if (fd < 0) return false;
  const auto bytes = static_cast<ssize_t>(strlen(text));
  const bool done = write(fd, text, static_cast<std::size_t>(bytes)) == bytes && fchmod(fd, 0644) == 0 &&
                    mount(made, path, nullptr, MS_BIND, nullptr) == 0;
  close(fd);
  unlink(made);
  return done;
}

bool raise_loopback() noexcept {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return done;
}

// Answer is a reply that grows behind the question of the packet it is written over.
class Answer {
 public:
  Answer(unsigned char* packet, int question_end, unsigned code) noexcept : packet_(packet), end_(question_end) {
    packet_[2] = 0x84;  // an authoritative answer
    packet_[3] = static_cast<unsigned char>(0x80 | code);
    memset(packet_ + 6, 0, 6);
  }
  void add(unsigned type, const unsigned char* data, int bytes) noexcept {
    const unsigned char record[] = {0xc0, kHeader, 0, static_cast<unsigned char>(type), 0, 1, 0, 0,
                                    0,    60,      0, static_cast<unsigned char>(bytes)};
    memcpy(packet_ + end_, record, sizeof record);
    memcpy(packet_ + end_ + sizeof record, data, static_cast<std::size_t>(bytes));
    end_ += static_cast<int>(sizeof record) + bytes;
    ++packet_[7];
  }
  int bytes() const noexcept { return end_; }

 private:
  unsigned char* packet_;
  int end_;
};

}  // namespace

const char* NameServer::start() noexcept {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return "a network and a mount name space of one's own need root";
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "the mounts cannot be made private";
  if (!put_over("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:10 attempts:2\n") ||
      !put_over("/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 board\n")) {
    return "/etc/resolv.conf cannot be mounted over";
  }
  if (!raise_loopback()) return "the loopback device cannot be raised";
  socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(53);
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) return "port 53 cannot be had";
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &serve, this) != 0) return "there is no thread to be had";
  pthread_detach(thread);
  return nullptr;
}

void* NameServer::serve(void* server) noexcept {
  auto& self = *static_cast<NameServer*>(server);
  for (;;) {
    unsigned char packet[kPacket];
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t got = recvfrom(self.socket_, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (got < kHeader + 5) continue;
    const int bytes = self.answer(packet, static_cast<int>(got));
    self.asked_.fetch_add(1, std::memory_order_release);
    if (bytes == 0) continue;
    sendto(self.socket_, packet, static_cast<std::size_t>(bytes), 0, reinterpret_cast<const sockaddr*>(&from), length);
  }
}

// answer writes the reply over the question and returns its length; 0: there is none.
int NameServer::answer(unsigned char* packet, int bytes) noexcept {
  int end = kHeader;
  while (end < bytes && packet[end] != 0) end += 1 + packet[end];
  end += 5;
  if (end > bytes) return 0;
  const unsigned type = packet[end - 3];
  const auto asks = [&](const char* label) {
    return packet[kHeader] == strlen(label) && memcmp(packet + kHeader + 1, label, strlen(label)) == 0;
  };
  unsigned char ipv4[] = {192, 0, 2, 7};
  const unsigned char ipv6[] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  if (asks("silent")) return 0;
  if (asks("garbage")) {
    for (int i = 2; i < kPacket / 2; ++i) packet[i] = static_cast<unsigned char>(i * 37);
    return kPacket / 2;
  }
  if (asks("missing")) return Answer(packet, end, 3).bytes();
  if (asks("broken")) return Answer(packet, end, 2).bytes();
  Answer answer(packet, end, 0);
  if (asks("both")) {
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4);
    if (type == kTypeAaaa) answer.add(kTypeAaaa, ipv6, sizeof ipv6);
  } else if (asks("many") && type == kTypeA) {
    for (unsigned char i = 0; i < 20; ++i) {
      ipv4[3] = static_cast<unsigned char>(100 + i);
      answer.add(kTypeA, ipv4, sizeof ipv4);
    }
  } else if (asks("pair") && type == kTypeA) {
    const unsigned char here[][4] = {{127, 0, 0, 2}, {127, 0, 0, 3}};
    for (const auto& each : here) answer.add(kTypeA, each, sizeof each);
  } else if (asks("late")) {
    while (!released_.load(std::memory_order_acquire)) poll(nullptr, 0, 1);
    ipv4[3] = 9;
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4);
  }
  return answer.bytes();
}

}  // namespace coir::test
