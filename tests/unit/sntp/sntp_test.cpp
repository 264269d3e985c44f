// query_time, with a time server that answers as a test says.

#include <coir/net/sntp.h>

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "sntp/sntp_message.h"
#include "tests/support/both_sides.h"

namespace sntp_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::query_time;
using coir::TimeSample;
using coir::sntp::read_answer;
using coir::sntp::unix_ns;
using coir::sntp::Verdict;

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kAhead = 3600 * kBillion;  // of the server's clock

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kBillion + now.tv_nsec;
}

void put(unsigned char* at, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) at[i] = static_cast<unsigned char>(value >> (8 * (size - 1 - i)));
}

std::uint64_t ntp(std::int64_t since_1970) {
  const auto ns = static_cast<std::uint64_t>(since_1970);
  return (ns / kBillion + 2'208'988'800) << 32 | ((ns % kBillion) << 32) / kBillion;
}

// Reply is a good answer to a request, to be spoilt.
struct Reply {
  unsigned char bytes[48] = {};

  Reply(const unsigned char* request, std::int64_t received, std::int64_t sent) {
    bytes[0] = 4 << 3 | 4;
    bytes[1] = 2;
    put(bytes + 4, 1 << 10, 4);
    put(bytes + 8, 1 << 10, 4);
    memcpy(bytes + 24, request + 40, 8);
    put(bytes + 32, ntp(received), 8);
    put(bytes + 40, ntp(sent), 8);
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes), sizeof bytes}; }
};

enum class Says {
  time,
  nothing,
  time_at_the_fourth,
  forgeries_first,  // each of another kind, then the time
  kiss,
  forged_kiss,
  not_synchronised,
  no_time_yet,  // as chrony and ntpd say it
  year_2040,
  year_2020,
};

class TimeServer {
 public:
  explicit TimeServer(Says what) : what_(what) {
    sockaddr_in here = {};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    bind(fd_, reinterpret_cast<const sockaddr*>(&here), sizeof here);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&here), &size);
    port_ = ntohs(here.sin_port);
    pthread_create(&thread_, nullptr, &run, this);
  }
  ~TimeServer() {
    shutdown(fd_, SHUT_RDWR);
    pthread_join(thread_, nullptr);
    close(fd_);
  }
  std::uint16_t port() const { return port_; }
  int asked() const { return asked_; }

 private:
  static void* run(void* self) {
    static_cast<TimeServer*>(self)->serve();
    return nullptr;
  }
  void serve() {
    for (;;) {
      unsigned char request[100];
      sockaddr_in from = {};
      socklen_t size = sizeof from;
      const ssize_t got = recvfrom(fd_, request, sizeof request, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got <= 0) return;  // shut down
      const std::int64_t received = now_ns() + kAhead;
      ++asked_;
      // A client of version 4 that tells nothing but a number.
      if (got != 48 || request[0] != (4 << 3 | 3)) continue;
      const auto say = [&](const Reply& reply, std::size_t bytes = 48) {
        sendto(fd_, reply.bytes, bytes, 0, reinterpret_cast<const sockaddr*>(&from), size);
      };
      Reply reply(request, received, now_ns() + kAhead);
      switch (what_) {
        case Says::nothing:
          continue;
        case Says::time_at_the_fourth:
          if (asked_ < 4) continue;
          break;
        case Says::forgeries_first: {
          const Reply wrong(request, received + kAhead, received + kAhead);
          Reply other = wrong;
          say(other, 47);
          other.bytes[24] ^= 1;  // another's time of sending
          say(other);
          memset(other.bytes + 24, 0, 8);
          say(other);
          other = wrong;
          other.bytes[0] = 4 << 3 | 3;  // a request
          say(other);
          other.bytes[0] = 5 << 3 | 4;
          say(other);
          break;
        }
        case Says::forged_kiss: {
          Reply other = reply;
          other.bytes[1] = 0;
          memcpy(other.bytes + 12, "DENY", 4);
          other.bytes[31] ^= 1;
          say(other);
          break;
        }
        case Says::kiss:
          reply.bytes[1] = 0;
          memcpy(reply.bytes + 12, "RATE", 4);
          break;
        case Says::not_synchronised:
          reply.bytes[0] |= 3 << 6;
          break;
        case Says::no_time_yet:
          reply.bytes[0] |= 3 << 6;
          reply.bytes[1] = 0;
          memcpy(reply.bytes + 12, asked_ % 2 == 0 ? "INIT" : "\0\0\0\0", 4);
          break;
        case Says::year_2040:
          reply = Reply(request, 2'208'988'800 * kBillion, 2'208'988'800 * kBillion);
          break;
        case Says::year_2020:
          reply = Reply(request, 1'577'836'800 * kBillion, 1'577'836'800 * kBillion);
          break;
        case Says::time:
          break;
      }
      say(reply);
    }
  }

  const Says what_;
  const int fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::uint16_t port_ = 0;
  std::atomic<int> asked_{0};
  pthread_t thread_;
};

bool is_right(const std::expected<TimeSample, Error>& sample, std::int64_t offset) {
  if (!sample || sample->delay < 0ns || sample->stratum != 2) return false;
  // Both clocks are this machine's; what was rounded is less than a microsecond.
  const std::int64_t wrong = sample->offset.count() - offset;
  return (wrong < 0 ? -wrong : wrong) <= sample->delay.count() / 2 + 1000;
}

bool fails(const auto& outcome, ErrorCode code, int number = 0) {
  return !outcome && outcome.error() == code && outcome.error().sys == number;
}

// An answer that is late is asked for again, so that a test on a busy machine ends well.
constexpr unsigned kForEver = 1'000'000;

}  // namespace

TEST_GROUP_BASE(Sntp, coir::test::BothSides) {
  std::expected<TimeSample, Error> ask(const TimeServer& server, std::chrono::milliseconds patience = 60s,
                                       unsigned rounds = 2, Deadline deadline = Deadline::never()) {
    return query_time("127.0.0.1", {.port = server.port(), .patience = patience, .rounds = rounds}, deadline);
  }
};

TEST(Sntp, tells_how_far_the_clock_is_off) {
  const TimeServer server(Says::time);
  both_sides([&] {
    const auto sample = ask(server);
    expect(is_right(sample, kAhead));
    char text[coir::Address::kMaxText];
    expect(sample && sample->server.port() == server.port() && sample->server.format(text).starts_with("127.0.0.1:"));
  });
}

TEST(Sntp, asks_again_where_no_answer_came) {
  both_sides([&] {
    const TimeServer server(Says::time_at_the_fourth);
    expect(is_right(ask(server, 20ms, kForEver), kAhead));
    expect(server.asked() >= 4);
  });
}

TEST(Sntp, an_answer_to_something_else_is_dropped) {
  const TimeServer server(Says::forgeries_first), kissing(Says::forged_kiss);
  both_sides([&] {
    expect(is_right(ask(server), kAhead));
    expect(is_right(ask(kissing), kAhead));
  });
}

TEST(Sntp, a_kiss_of_death_is_told_and_the_server_left_alone) {
  both_sides([&] {
    const TimeServer server(Says::kiss);
    expect(fails(ask(server, 60s, 5), ErrorCode::alert, coir::kKissRate));
    expect(server.asked() == 1);
  });
}

TEST(Sntp, a_server_without_the_time_is_passed_over) {
  both_sides([&] {
    for (const Says what : {Says::not_synchronised, Says::no_time_yet, Says::year_2020}) {
      const TimeServer server(what);
      expect(fails(ask(server, 60s, 3), ErrorCode::temporary));
      expect(server.asked() == 3);
    }
  });
}

TEST(Sntp, knows_the_era_behind_2036) {
  const TimeServer server(Says::year_2040);
  both_sides([&] {
    const std::int64_t before = now_ns();
    const auto sample = ask(server);
    const std::int64_t reached = sample ? sample->offset.count() + before : 0;
    // Between the two readings of the clock the time went on.
    expect(sample && reached <= 2'208'988'800 * kBillion + 1000);
    expect(reached > (2'208'988'800 - 60) * kBillion);
  });
}

TEST(Sntp, silence_is_temporary_and_a_deadline_a_deadline) {
  const TimeServer server(Says::nothing);
  both_sides([&] {
    expect(fails(ask(server, 1ms, 3), ErrorCode::temporary));
    expect(fails(ask(server, 60s, 3, Deadline::after(5ms)), ErrorCode::timed_out));
  });
}

TEST(Sntp, a_closed_port_is_told) {
  std::uint16_t port;
  {
    const TimeServer gone(Says::nothing);
    port = gone.port();
  }
  both_sides([&] {
    expect(fails(query_time("127.0.0.1", {.port = port, .patience = 60s}), ErrorCode::system, ECONNREFUSED));
    expect(fails(query_time("", {.port = port}), ErrorCode::invalid));
  });
}

TEST_GROUP(SntpMessage) {};

TEST(SntpMessage, era_and_fraction_are_right) {
  CHECK_TRUE(unix_ns(0) == 2'085'978'496 * kBillion);  // 2036-02-07 06:28:16
  CHECK_TRUE(unix_ns(0xffff'ffff'8000'0000) == 2'085'978'495 * kBillion + kBillion / 2);
  CHECK_TRUE(unix_ns(ntp(1'767'225'600 * kBillion)) == 1'767'225'600 * kBillion);
  CHECK_TRUE(unix_ns(ntp(1'767'225'599 * kBillion)) < 0);
  CHECK_TRUE(unix_ns(ntp(4'922'985'599 * kBillion)) == 4'922'985'599 * kBillion);  // the end of 2125
  CHECK_TRUE(unix_ns(ntp(4'923'072'000 * kBillion)) < 0);
}

TEST(SntpMessage, an_answer_that_is_not_believed_is_useless) {
  unsigned char request[48] = {};
  put(request + 40, 7, 8);
  const std::int64_t now = 1'800'000'000 * kBillion;
  const Reply good(request, now, now + 5);
  CHECK_TRUE(read_answer(good.view(), 7).verdict == Verdict::time);
  CHECK_TRUE(read_answer(good.view(), 8).verdict == Verdict::not_ours);
  const auto verdict = [&](auto spoil) {
    Reply reply = good;
    spoil(reply.bytes);
    return read_answer(reply.view(), 7).verdict;
  };
  CHECK_TRUE(verdict([](unsigned char* bytes) { bytes[1] = 15; }) == Verdict::time);
  CHECK_TRUE(verdict([](unsigned char* bytes) { bytes[1] = 16; }) == Verdict::useless);
  CHECK_TRUE(verdict([](unsigned char* bytes) { put(bytes + 4, 32 << 16, 4); }) == Verdict::useless);
  CHECK_TRUE(verdict([](unsigned char* bytes) { put(bytes + 8, 16 << 16, 4); }) == Verdict::useless);
  CHECK_TRUE(verdict([](unsigned char* bytes) { put(bytes + 32, 0, 8); }) == Verdict::useless);
  CHECK_TRUE(verdict([](unsigned char* bytes) { put(bytes + 40, 0, 8); }) == Verdict::useless);
  const std::int64_t later = 2'100'000'000 * kBillion;  // in the next era
  CHECK_TRUE(verdict([&](unsigned char* bytes) { put(bytes + 40, ntp(later), 8); }) == Verdict::time);
  CHECK_TRUE(verdict([&](unsigned char* bytes) {
               put(bytes + 32, 0, 8);
               put(bytes + 40, ntp(later), 8);
             }) == Verdict::useless);
  // Sent before it was received.
  CHECK_TRUE(verdict([&](unsigned char* bytes) { put(bytes + 40, ntp(now - kBillion), 8); }) == Verdict::useless);
}

namespace {

std::int64_t g_set_ns = -1;

}  // namespace

#pragma clang diagnostic ignored "-Wreserved-identifier"
extern "C" int __wrap_clock_settime(clockid_t, const timespec* to) {
  g_set_ns = to->tv_sec * kBillion + to->tv_nsec;
  return 0;
}

TEST_GROUP(SetClock) {
  void setup() override { g_set_ns = -1; }
};

TEST(SetClock, a_time_that_cannot_be_is_invalid) {
  CHECK_TRUE(fails(coir::set_clock(std::chrono::nanoseconds::min()), ErrorCode::invalid));
  CHECK_TRUE(fails(coir::set_clock(std::chrono::nanoseconds::max()), ErrorCode::invalid));
  CHECK_TRUE(g_set_ns == -1);
}

#if __SIZEOF_POINTER__ == 8
TEST(SetClock, adds_to_the_clock) {
  for (const std::chrono::nanoseconds by : {std::chrono::nanoseconds(5s), std::chrono::nanoseconds(-1500ms)}) {
    const std::int64_t before = now_ns();
    CHECK_TRUE(coir::set_clock(by).has_value());
    CHECK_TRUE(g_set_ns >= before + by.count() && g_set_ns <= now_ns() + by.count());
  }
}
#endif

}  // namespace sntp_test
