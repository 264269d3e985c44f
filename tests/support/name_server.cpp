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

#include <utility>

namespace coir::test {

namespace {

constexpr int kHeader = 12, kPacket = 512;
constexpr unsigned kTypeA = 1, kTypeCname = 5, kTypeSoa = 6, kTypeAaaa = 28;

// is_half tells of the label "half", a digit and maybe an "s".
bool is_half(const unsigned char* packet) noexcept {
  return (packet[kHeader] == 5 || packet[kHeader] == 6) && memcmp(packet + kHeader + 1, "half", 4) == 0;
}

bool is_walled(const unsigned char* packet) noexcept {
  return memcmp(packet + kHeader + 1, "walled", 6) == 0;
}

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
  // add is for the name that was asked for, or the one that begins at `name`; `count` is 7 for an answer, 9 for what else
  // there is to say.
  void add(unsigned type, const unsigned char* data, int bytes, int seconds = 60, int name = kHeader,
           int count = 7) noexcept {
    const unsigned char record[] = {
        0xc0, static_cast<unsigned char>(name),    0, static_cast<unsigned char>(type), 0, 1, 0, 0,
        0,    static_cast<unsigned char>(seconds), 0, static_cast<unsigned char>(bytes)};
    memcpy(packet_ + end_, record, sizeof record);
    memcpy(packet_ + end_ + sizeof record, data, static_cast<std::size_t>(bytes));
    end_ += static_cast<int>(sizeof record) + bytes;
    ++packet_[count];
  }
  int bytes() const noexcept { return end_; }

 private:
  unsigned char* packet_;
  int end_;
};

}  // namespace

const char* NameServer::start(const char* conf) noexcept {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return "a network and a mount name space of one's own need root";
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "the mounts cannot be made private";
  if (!put_over("/etc/resolv.conf", conf) || !put_over("/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 board\n")) {
    return "/etc/resolv.conf cannot be mounted over";
  }
  if (!raise_loopback()) return "the loopback device cannot be raised";
  void* (*const serving[])(void*) = {&serve_first, &serve_second, &serve_by_tcp};
  for (unsigned i = 0; i < 3; ++i) {
    const int fd = socket(AF_INET, (i < 2 ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(53);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i % 2);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) return "port 53 cannot be had";
    if (i == 2 && listen(fd, 5) != 0) return "port 53 cannot be listened to";
    (i < 2 ? sockets_[i] : listener_) = fd;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, serving[i], this) != 0) return "there is no thread to be had";
    pthread_detach(thread);
  }
  return nullptr;
}

void* NameServer::serve_first(void* server) noexcept {
  auto& self = *static_cast<NameServer*>(server);
  self.serve(self.sockets_[0], true);
  return nullptr;
}

void* NameServer::serve_second(void* server) noexcept {
  auto& self = *static_cast<NameServer*>(server);
  self.serve(self.sockets_[1], false);
  return nullptr;
}

void NameServer::serve(int socket, bool first) noexcept {
  unsigned char kept[kPacket];  // a question for IPv4 addresses that is answered behind that for IPv6's
  ssize_t kept_bytes = 0;
  for (;;) {
    unsigned char packet[kPacket];
    sockaddr_in from{};
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(socket, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (got < kHeader + 5) continue;
    const auto send = [&](const unsigned char* reply, std::size_t bytes) {
      sendto(socket, reply, bytes, 0, reinterpret_cast<const sockaddr*>(&from), length);
    };
    if (memcmp(packet + kHeader + 1, "second", 6) == 0 && first) {
      asked_.fetch_add(1, std::memory_order_release);
      continue;
    }
    if (memcmp(packet + kHeader + 1, "forged", 6) == 0) {
      constexpr int kWrong[] = {0, kHeader + 1};  // another number; another name
      for (const int at : kWrong) {
        unsigned char wrong[kPacket];
        memcpy(wrong, packet, static_cast<std::size_t>(got));
        const int bytes = answer(wrong, static_cast<int>(got), false);
        wrong[at] ^= 1;
        wrong[bytes - 1] = 66;
        send(wrong, static_cast<std::size_t>(bytes));
      }
    }
    const bool keeps = is_half(packet) && packet[got - 3] == kTypeA;
    if (keeps) {
      memcpy(kept, packet, static_cast<std::size_t>(got));
      kept_bytes = got;
      continue;
    }
    for (const bool half = is_half(packet); got != 0; got = half ? std::exchange(kept_bytes, 0) : 0) {
      const int bytes = answer(packet, static_cast<int>(got), false);
      asked_.fetch_add(1, std::memory_order_release);
      if (first && is_walled(packet)) packet[2] |= 2;
      if (bytes != 0) send(packet, static_cast<std::size_t>(bytes));
      memcpy(packet, kept, sizeof packet);
    }
  }
}

void* NameServer::serve_by_tcp(void* server) noexcept {
  auto& self = *static_cast<NameServer*>(server);
  for (;;) {
    const int fd = accept4(self.listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    unsigned char packet[2 + kPacket] = {};
    const ssize_t got = recv(fd, packet, sizeof packet, 0);
    if (is_walled(packet + 2)) continue;  // and the connection stays
    const int bytes = got < 2 + kHeader + 5 ? 0 : self.answer(packet + 2, static_cast<int>(got) - 2, true);
    packet[0] = static_cast<unsigned char>(bytes >> 8);
    packet[1] = static_cast<unsigned char>(bytes);
    // In two pieces, as it may come.
    constexpr std::size_t kFirst = 20;
    if (bytes != 0) {
      send(fd, packet, kFirst, MSG_NOSIGNAL);
      send(fd, packet + kFirst, 2 + static_cast<std::size_t>(bytes) - kFirst, MSG_NOSIGNAL);
    }
    close(fd);
  }
}

// answer writes the reply over the question and returns its length; 0: there is none.
int NameServer::answer(unsigned char* packet, int bytes, bool by_tcp) noexcept {
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
  if (asks("silent") || silent_.load(std::memory_order_acquire)) return 0;
  if (asks("garbage")) {
    for (int i = 2; i < kPacket / 2; ++i) packet[i] = static_cast<unsigned char>(i * 37);
    return kPacket / 2;
  }
  if (is_half(packet)) {
    const bool silent = packet[kHeader] > 5;
    if (type == kTypeA && silent) return 0;
    Answer half(packet, end, type == kTypeA ? 0 : static_cast<unsigned>(packet[kHeader + 5] - '0'));
    if (type == kTypeA) half.add(kTypeA, ipv4, sizeof ipv4);
    return half.bytes();
  }
  if (asks("missing")) return Answer(packet, end, 3).bytes();
  if (asks("broken")) return Answer(packet, end, 2).bytes();
  if (asks("refused")) return Answer(packet, end, 5).bytes();
  const bool near = asks("near") && memcmp(packet + kHeader + 6, "example", 7) == 0;
  if (asks("absent") || (asks("near") && !near)) {
    // The zone's record: two names, five numbers, of which the last is a minute.
    unsigned char zone[22] = {};
    zone[21] = 60;
    Answer nothing(packet, end, 3);
    nothing.add(kTypeSoa, zone, sizeof zone, 60, kHeader, 9);
    return nothing.bytes();
  }
  Answer answer(packet, end, 0);
  if (asks("long") && !by_tcp) {
    packet[2] |= 2;
  } else if (asks("alias")) {
    const unsigned char other[] = {1, 'b', 0xc0, kHeader + 6};
    const int at = answer.bytes() + kHeader;  // where that name will stand
    answer.add(kTypeCname, other, sizeof other);
    ipv4[3] = 8;
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4, 30, at);
  } else if (asks("circle")) {
    const unsigned char itself[] = {0xc0, kHeader};
    answer.add(kTypeCname, itself, sizeof itself);
  } else if (asks("brief") || asks("forged") || asks("second") || asks("walled") || near) {
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4, asks("brief") ? 0 : 60);
  } else if (asks("both")) {
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4);
    if (type == kTypeAaaa) answer.add(kTypeAaaa, ipv6, sizeof ipv6);
  } else if ((asks("many") || asks("long")) && type == kTypeA) {
    for (unsigned char i = 0; i < 20; ++i) {
      ipv4[3] = static_cast<unsigned char>(100 + i);
      answer.add(kTypeA, ipv4, sizeof ipv4);
    }
  } else if (asks("pair") && type == kTypeA) {
    const unsigned char here[][4] = {{127, 0, 0, 2}, {127, 0, 0, 3}};
    for (const auto& each : here) answer.add(kTypeA, each, sizeof each);
  } else if (asks("moving") && type == kTypeA) {
    const unsigned char here[] = {127, 0, 0,
                                  static_cast<unsigned char>(moved_.load(std::memory_order_acquire) ? 3 : 2)};
    answer.add(kTypeA, here, sizeof here, 3);
  } else if (asks("late")) {
    while (!released_.load(std::memory_order_acquire)) poll(nullptr, 0, 1);
    ipv4[3] = 9;
    if (type == kTypeA) answer.add(kTypeA, ipv4, sizeof ipv4);
  }
  return answer.bytes();
}

}  // namespace coir::test
