#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/tcp.h>
#include <string.h>

#include <atomic>
#include <string_view>

#include "proxy/upstreams/upstream.h"
#include "tests/support/everywhere.h"
#include "tests/support/folder.h"
#include "tests/support/until.h"
#include "tests/unit/client/scripted_server.h"

namespace upstream_health_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

constexpr std::string_view kWell = "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
constexpr std::string_view kIll = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";

// Clinic is a server whose checks are answered as the test says, and keeps the latest head.
struct Clinic {
  std::atomic<const std::string_view*> answer{&kWell};  // null: none
  std::atomic<unsigned> checks{0};
  char head[1024] = {};
  ScriptedServer server{[this](Peer& peer) {
    const std::string_view heard = peer.hear();
    if (heard.empty()) return;
    if (checks == 0) memcpy(head, heard.data(), std::min(heard.size(), sizeof head - 1));
    ++checks;
    const std::string_view* const text = answer;
    if (text == nullptr) return peer.until_gone();
    peer.say(*text);
  }};
};

// News is what on_change has said: "server up" or "server why" a line.
struct News {
  char text[1024] = {};
  std::atomic<std::size_t> size{0};
  std::atomic<unsigned> count{0};

  void operator()(const UpstreamNews& news) {
    Formatter out(std::span(text).subspan(size));
    out.add(news.up ? "up" : news.why, "\n");
    size += out.text().size();
    ++count;
  }
  std::string_view view() const { return {text, size}; }
  bool comes_to(unsigned many) const {
    return until([&] { return count >= many; }, soon());
  }
};

// Ward is a group of servers, with the options of a test.
struct Ward {
  News news;
  char texts[2][64];
  UpstreamServer servers[2];
  std::size_t count = 0;

  void add(std::uint16_t port) {
    servers[count] = {coir::format(texts[count], "http://127.0.0.1:", port)};
    ++count;
  }
  Upstreams watched(UpstreamOptions options) {
    options.on_change = news;
    auto made = *Upstreams::create(std::span(servers).first(count), options);
    static_cast<void>(made.watch());
    return made;
  }
};

constexpr UpstreamHealth kQuick{.path = "/healthz?now", .interval = 5ms, .timeout = 10s, .failures = 2, .successes = 2};

bool answering(const Upstreams& upstreams, std::size_t servers) {
  return until([&] { return upstreams.state().answering == servers; }, soon());
}

// takers is how many of `takes` go to the second server.
int takers_of_second(UpstreamGroup& group, int takes) {
  int second = 0;
  for (int i = 0; i < takes; ++i) {
    auto lease = group.take({.must_be_new = true}, soon());
    if (lease) second += group.members()[1].in_use == 1;
  }
  return second;
}

}  // namespace

TEST_GROUP_BASE(UpstreamHealth, coir::test::Everywhere) {};

TEST(UpstreamHealth, a_server_whose_checks_fail_is_not_asked_until_they_succeed_again) {
  everywhere([&] {
    Clinic first, second;
    Ward ward;
    ward.add(first.server.port());
    ward.add(second.server.port());
    auto upstreams = ward.watched({.health = kQuick});
    expect(until([&] { return first.checks > 2 && second.checks > 2; }, soon()));
    expect(ward.news.count == 0 && upstreams.state().answering == 2);
    second.answer = &kIll;
    expect(answering(upstreams, 1));
    expect(takers_of_second(upstreams.group(), 6) == 0);
    expect(!upstreams.server(1).up && upstreams.server(0).up && upstreams.server(1).downs == 1);
    expect(upstreams.server(1).failed_checks >= 2 && upstreams.server(0).failed_checks == 0);
    second.answer = &kWell;
    expect(answering(upstreams, 2));
    expect(takers_of_second(upstreams.group(), 6) == 3);
    expect(ward.news.comes_to(2) && ward.news.view() == "its check was answered 503\nup\n");
  });
}

TEST(UpstreamHealth, a_check_is_a_request_of_the_path_by_the_server_s_name) {
  everywhere([&] {
    Clinic clinic;
    Ward ward;
    ward.add(clinic.server.port());
    auto upstreams = ward.watched({.health = kQuick});
    expect(until([&] { return clinic.checks > 0; }, soon()));
    char wanted[200];
    expect(std::string_view(clinic.head) ==
           coir::format(wanted, "GET /healthz?now HTTP/1.1\r\nHost: 127.0.0.1:", clinic.server.port(),
                        "\r\nUser-Agent: coir\r\nAccept: */*\r\nConnection: close\r\n\r\n"));
  });
}

TEST(UpstreamHealth, the_only_server_is_not_asked_either_while_its_checks_fail) {
  everywhere([&] {
    Clinic clinic;
    clinic.answer = &kIll;
    Ward ward;
    ward.add(clinic.server.port());
    auto upstreams = ward.watched({.health = kQuick});
    // The first check of all is enough.
    expect(answering(upstreams, 0));
    const auto lease = upstreams.group().take({}, soon());
    expect(!lease && lease.error() == ErrorCode::limit && upstreams.state().unavailable == 1);
  });
}

TEST(UpstreamHealth, a_malformed_answer_is_reported_and_a_silent_server_has_its_time) {
  static constexpr std::string_view kGarbage = "SSH-2.0-x\r\n\r\n", kNothing = "HTTP/1.1 200 OK\r\n";
  // The room for an answer is 4 KB.
  static char memory[4096];
  memset(memory, 'x', sizeof memory);
  constexpr std::string_view kBegin = "HTTP/1.1 200 OK\r\nLong: ";
  kBegin.copy(memory, sizeof memory);
  static constexpr std::string_view kLong{memory, sizeof memory};
  struct Case {
    const std::string_view* answer;
    std::string_view told;
  };
  for (const Case& each :
       {Case{&kGarbage, "its response is none\n"}, Case{&kNothing, "it hung up before its response was whole\n"},
        Case{&kLong, "the head of its response is too long\n"}, Case{nullptr, "it did not answer in time\n"}}) {
    everywhere([&] {
      Clinic clinic;
      clinic.answer = each.answer;
      Ward ward;
      ward.add(clinic.server.port());
      UpstreamHealth health = kQuick;
      if (each.answer == nullptr) health.timeout = 20ms;
      auto upstreams = ward.watched({.health = health});
      expect(ward.news.comes_to(1) && ward.news.view() == each.told);
    });
  }
}

TEST(UpstreamHealth, without_a_path_a_server_that_is_down_at_start_is_told_once_and_again_when_it_is_back) {
  Folder folder;
  const char* const path = folder.at("socket");
  everywhere([&] {
    char url[200];
    Ward ward;
    ward.servers[ward.count++] = {coir::format(url, "unix:", std::string_view(path))};
    auto upstreams = ward.watched({.longest = 1s});
    expect(ward.news.comes_to(1) && !upstreams.server(0).up);
    ScriptedServer server(answer_all(kWell), path);
    expect(ward.news.comes_to(2) && ward.news.view() == "not found\nup\n");
    expect(upstreams.server(0).up && upstreams.server(0).downs == 1);
    ::unlink(path);
  });
}

TEST(UpstreamHealth, without_a_path_servers_that_are_there_are_connected_to_once) {
  everywhere([&] {
    Clinic clinic;
    Ward ward;
    ward.add(clinic.server.port());
    auto upstreams = ward.watched({});
    expect(until([&] { return clinic.server.connections() == 1; }, soon()));
    expect(until([&] { return stats().timers_armed == 0; }, soon()));
    expect(clinic.server.connections() == 1 && ward.news.count == 0 && upstreams.server(0).requests == 0);
  });
}

// Many connections made at once may overflow a queue that a busy machine empties late: the servers have long to accept.
TEST(UpstreamHealth, a_server_that_is_back_takes_its_share_bit_by_bit) {
  everywhere([&] {
    Clinic first, second;
    second.answer = &kIll;
    Ward ward;
    ward.add(first.server.port());
    ward.add(second.server.port());
    auto upstreams = ward.watched({.connect = 60s, .slow_start = 24h, .health = kQuick});
    expect(answering(upstreams, 1));
    second.answer = &kWell;
    expect(answering(upstreams, 2));
    const int taken = takers_of_second(upstreams.group(), 66);
    expect(taken >= 1 && taken <= 3);
  });
}

TEST(UpstreamHealth, a_server_that_rises_is_given_few_of_its_keys) {
  everywhere([&] {
    Clinic first, second;
    second.answer = &kIll;
    Ward ward;
    ward.add(first.server.port());
    ward.add(second.server.port());
    auto upstreams = ward.watched({.balance = Balance::hash, .connect = 60s, .slow_start = 24h, .health = kQuick});
    expect(answering(upstreams, 1));
    second.answer = &kWell;
    expect(answering(upstreams, 2));
    int taken = 0;
    for (std::uint64_t key = 0; key < 128; ++key) {
      auto lease = upstreams.group().take({.key = key, .must_be_new = true}, soon());
      taken += lease && upstreams.group().members()[1].in_use == 1;
    }
    expect(taken < 16);
  });
}

TEST(UpstreamHealth, a_group_that_goes_in_the_middle_of_a_check_waits_for_nothing) {
  everywhere([&] {
    Clinic silent, other;
    silent.answer = nullptr;
    Ward ward;
    ward.add(silent.server.port());
    ward.add(other.server.port());
    UpstreamHealth health = kQuick;
    health.timeout = 24h;
    {
      auto upstreams = ward.watched({.health = health});
      expect(until([&] { return silent.checks == 1; }, soon()));
    }
    expect(ward.news.count == 0);
  });
}

TEST(UpstreamHealth, exchanges_take_a_server_down_and_bring_it_back_but_those_of_before_do_not) {
  everywhere([&] {
    Clinic clinic;
    Ward ward;
    ward.add(clinic.server.port());
    auto upstreams = ward.watched({.failures = 2});
    UpstreamGroup& group = upstreams.group();
    auto of_before = std::move(*group.take({.must_be_new = true}, soon()));
    for (int i = 0; i < 2; ++i) group.take({.must_be_new = true}, soon())->failed(UpstreamFault::malformed);
    expect(ward.news.comes_to(1) && !upstreams.server(0).up);
    of_before.give_back(false);
    // One that is left, as its client had gone, proves nothing.
    group.take({.must_be_new = true}, soon())->leave();
    expect(!upstreams.server(0).up);
    group.take({.must_be_new = true}, soon())->give_back(false);
    expect(ward.news.comes_to(2) && upstreams.server(0).up);
    expect(ward.news.view() == "its response is none\nup\n");
    const auto state = upstreams.server(0);
    expect(state.requests == 5 && state.malformed == 2 && state.cut == 0 && state.unreachable == 0);
  });
}

TEST(UpstreamHealth, a_check_for_which_this_side_lacks_memory_says_nothing_of_the_server) {
  everywhere([&] {
    Clinic clinic;
    Ward ward;
    ward.add(clinic.server.port());
    const std::size_t ceiling = account::connections.ceiling();
    const std::uint64_t refused = account::connections.refusals();
    account::connections.set_ceiling(account::connections.used());
    auto upstreams = ward.watched({.health = kQuick});
    expect(until([&] { return account::connections.refusals() > refused + 3; }, soon()));
    expect(ward.news.count == 0 && upstreams.server(0).up && upstreams.server(0).failed_checks == 0);
    account::connections.set_ceiling(ceiling);
    expect(until([&] { return clinic.checks > 0; }, soon()));
    expect(upstreams.server(0).up);
  });
}

TEST(UpstreamHealth, a_path_that_is_none_is_refused) {
  everywhere([&] {
    for (const std::string_view path : {"healthz", "/a b", "/a\r\nX: y"}) {
      const auto made = Upstreams::create("http://127.0.0.1:1", {.health = {.path = path}});
      expect(!made && made.error() == ErrorCode::invalid);
    }
  });
}

}  // namespace upstream_health_test
