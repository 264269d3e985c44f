// Uploads whose clients are slow: while nothing comes they are a pair of records, and they go on whole.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <optional>

#include "tests/support/tls_pair.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_slow_uploads_test {

using namespace coir::test;
using coir::Address;
using coir::Fiber;

namespace {

constexpr int kSlow = 6;  // more than there are places
constexpr std::string_view kFine = "GET /fine HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kBegin = "POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nfirst,";
constexpr std::string_view kBeginChunks =
    "POST /up HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst,";

// Taking is an upstream that takes content up to `end` and answers with 200, and anything without content with hello. Behind
// the first of it, it does `then`, if there is one.
struct Taking {
  std::string_view end = "second";
  std::function<bool(Peer&)> then = {};
  Heard* taken = nullptr;  // keeps what has been taken, if there is one
  std::atomic<int> begun{0}, gone{0};

  ScriptedServer::Script script() {
    return [this](Peer& peer) {
      for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
        if (!head.starts_with("POST")) {
          if (!peer.say(kHello)) return;
        } else if (!take(peer)) {
          ++gone;
          return;
        } else if (!peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken")) {
          return;
        }
      }
    };
  }
  bool take(Peer& peer) {
    char text[256];
    std::size_t have = 0;
    for (bool first = true; have < sizeof text;) {
      const std::string_view byte = peer.hear_content(1);
      if (byte.empty()) return false;
      text[have++] = byte[0];
      const std::string_view heard(text, have);
      if (first && heard.find("first,") != heard.npos) {
        first = false;
        ++begun;
        if (then) return then(peer);
      }
      if (heard.ends_with(end)) {
        if (taken != nullptr) taken->keep(heard);
        return true;
      }
    }
    return false;
  }
};

}  // namespace

TEST_GROUP_BASE(ProxySlowUploads, Gateway) {
  bool rest(Server& server, Stage& stage, std::size_t uploads) {
    return until([&] { return stage.forwarder->waiting() == uploads && server.gauges().active == 0; }, soon());
  }
  // at_rest has a client begin an upload, and runs `visit` when nothing of it is active.
  template <class Visit>
  void at_rest(Taking& upstream, const ForwardRules& rules, std::string_view begin, Visit visit) {
    through(upstream.script(), rules, {}, [&](Server& server, const Address& address, Stage& stage) {
      upstream.begun = upstream.gone = 0;
      Client client(address);
      expect(client.say(begin) && rest(server, stage, 1));
      visit(server, client, stage);
    });
  }
};

TEST(ProxySlowUploads, hold_no_place_and_no_buffer_while_nothing_moves) {
  Taking upstream;
  ServerOptions options;
  options.max_active = 2;
  through(upstream.script(), {}, options, [&](Server& server, const Address& address, Stage& stage) {
    const auto buffers = [] { return coir::account::buffers.used() - coir::Buffer::spare_bytes(); };
    const std::size_t buffers_before = buffers(), streams_before = coir::account::streams.used();
    static std::array<std::optional<Client>, kSlow> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say(kBegin));
    }
    expect(rest(server, stage, kSlow));
    expect(buffers() == buffers_before);
    expect(coir::account::streams.used() - streams_before <= kSlow * 700);
    Client other(address);
    expect(other.say(kFine) && other.hear("hello"));
    for (auto& client : clients) expect(client->say("second") && client->hear("taken"));
    for (auto& client : clients) expect(client->say(kFine) && client->hear("hello"));
    expect(rest(server, stage, 0));
    for (auto& client : clients) client.reset();
  });
}

#if COIR_TLS
TEST(ProxySlowUploads, rest_by_tls_too) {
  const auto context = authority().server(), trusts = authority().client();
  coir::TlsContextSlot slot(context);
  tls = &slot;
  Taking upstream;
  through(upstream.script(), {}, {}, [&](Server& server, const Address& address, Stage& stage) {
    auto stream = coir::connect_tls(address, "board.test", trusts, soon());
    expect(stream && stream->write(kBegin, soon()) && rest(server, stage, 1));
    if (!stream) return;
    char heard[512];
    std::size_t have = 0;
    expect(stream->write("second", soon()).has_value());
    while (std::string_view(heard, have).find("taken") == std::string_view::npos) {
      const auto got = stream->read(std::span(heard).subspan(have), soon());
      expect(got.has_value());
      if (!got) break;
      have += *got;
    }
  });
}
#endif

TEST(ProxySlowUploads, that_send_a_byte_again_and_again_hold_no_place) {
  constexpr std::size_t kContent = 4000;
  const auto script = [](Peer& peer) {
    for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
      if (head.starts_with("POST") && peer.hear_content(kContent).size() != kContent) return;
      if (!peer.say(kHello)) return;
    }
  };
  ServerOptions options;
  options.max_active = 2;
  through(script, {}, options, [&](Server& server, const Address& address, Stage& stage) {
    static std::array<std::optional<Client>, kSlow> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say("POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n"));
    }
    Client other(address);
    expect(other.say(kFine));
    std::size_t sent = 0;
    char heard[512];
    bool answered = false, all_rest = false;
    for (; !(answered && all_rest) && sent < kContent - 1; ++sent) {
      for (auto& client : clients) expect(client->say("x"));
      answered = answered || other.stream.read(heard, coir::Deadline::after(4ms)).has_value();
      if (answered) all_rest = until([&] { return stage.forwarder->waiting() == kSlow; }, coir::Deadline::after(4ms));
    }
    expect(answered && all_rest);
    static const char rest[kContent] = {};
    for (auto& client : clients) expect(client->say({rest, kContent - sent}) && client->hear("hello"));
    expect(this->rest(server, stage, 0));
    for (auto& client : clients) client.reset();
  });
}

TEST(ProxySlowUploads, rest_between_any_two_bytes) {
  Taking upstream{.end = "0\r\n\r\n"};
  at_rest(upstream, {}, kBeginChunks, [&](Server& server, Client& client, Stage& stage) {
    for (const char byte : std::string_view("\r\n6;x=y\r\nsecond\r\n0\r\n")) {
      expect(client.say({&byte, 1}));
      // The byte is taken up: then it rests again.
      int unread = 1;
      expect(until([&] { return ::ioctl(client.stream.fd(), SIOCOUTQ, &unread) == 0 && unread == 0; }, soon()));
      expect(rest(server, stage, 1));
    }
    expect(client.say("\r\n") && client.hear("taken") && client.say(kFine) && client.hear("hello"));
  });
}

// Their text lies in buffers that others would fill with their own.
TEST(ProxySlowUploads, half_of_the_trailers_is_sent_under_nobody_elses_request) {
  Heard taken;
  Taking upstream{.end = "\r\n\r\n", .taken = &taken};
  through(upstream.script(), {}, [&](const Address& address, Stage&) {
    taken.size = 0;
    Client slow(address), other(address);
    expect(slow.say(kBeginChunks) && slow.say("\r\n0\r\nX-Whose: sl"));
    // As long as would do for it to rest.
    constexpr int kOthers = 20;
    for (int turn = 0; turn < kOthers; ++turn) {
      expect(coir::sleep(3ms).has_value());
      other.have = 0;
      expect(other.say(kBeginChunks) && other.say("\r\n0\r\nX-Whose: another's\r\n\r\n") && other.hear("taken"));
    }
    expect(slow.say("ow\r\n\r\n") && slow.hear("taken"));
    expect(taken.count("X-Whose: slow\r\n") == 1 && taken.count("X-Whose: another's\r\n") == kOthers);
  });
}

TEST(ProxySlowUploads, one_that_sends_nothing_is_408_behind_its_time) {
  Taking upstream;
  // It rests by then, unless the machine is busy.
  through(upstream.script(), {.body_timeout = 300ms}, {}, [&](Server&, const Address& address, Stage&) {
    upstream.begun = upstream.gone = 0;
    Client client(address);
    expect(client.say(kBegin) && client.hear("408 Request Timeout"));
    expect(until([&] { return upstream.gone == 1; }, soon()));
  });
}

// Nothing of the chunks before is left.
TEST(ProxySlowUploads, one_behind_an_upload_in_chunks_is_408_behind_its_time) {
  Taking upstream;
  upstream.end = "0\r\n\r\n";
  through(upstream.script(), {.body_timeout = 300ms}, {}, [&](Server&, const Address& address, Stage&) {
    Client client(address);
    char both[256];
    expect(client.say(coir::format(both, kBeginChunks, "\r\n0\r\n\r\n", kBegin)));
    expect(client.hear("taken") && client.hear("408 Request Timeout"));
  });
}

TEST(ProxySlowUploads, one_whose_time_is_too_short_to_rest_is_408_behind_it) {
  Taking upstream;
  through(upstream.script(), {.body_timeout = 30ms}, {}, [&](Server&, const Address& address, Stage&) {
    Client client(address);
    expect(client.say(kBegin) && client.hear("408 Request Timeout"));
  });
}

TEST(ProxySlowUploads, one_that_vanishes_has_its_upstream_left) {
  Taking upstream;
  at_rest(upstream, {}, kBegin, [&](Server& server, Client& client, Stage& stage) {
    client.reset();
    expect(until([&] { return upstream.gone == 1; }, soon()) && rest(server, stage, 0));
  });
}

TEST(ProxySlowUploads, an_upstream_that_hangs_up_is_502) {
  std::atomic<bool> goes{false};
  Taking upstream;
  upstream.then = [&](Peer& peer) {
    while (!goes) ::poll(nullptr, 0, 1);
    return peer.hang_up(), false;
  };
  at_rest(upstream, {}, kBegin, [&](Server&, Client& client, Stage&) {
    goes = true;
    expect(client.hear("502 Bad Gateway"));
    goes = false;
  });
}

TEST(ProxySlowUploads, an_answer_that_comes_first_ends_them) {
  std::atomic<bool> goes{false};
  Taking upstream;
  upstream.then = [&](Peer& peer) {
    while (!goes) ::poll(nullptr, 0, 1);
    return peer.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"), false;
  };
  at_rest(upstream, {}, kBegin, [&](Server&, Client& client, Stage&) {
    goes = true;
    expect(client.hear("413 Content Too Large") && client.hear("big"));
    goes = false;
  });
}

TEST(ProxySlowUploads, a_server_that_stops_takes_the_rest_of_them) {
  Taking upstream;
  at_rest(upstream, {}, kBegin, [&](Server& server, Client& client, Stage&) {
    Fiber stopper = coir::spawn([&] { expect(server.stop(soon()).has_value()); });
    expect(until([&] { return server.gauges().active == 1; }, soon()));
    expect(client.say("second") && client.hear("taken") && client.hear_the_end());
    client.reset();
    expect(stopper.join().has_value());
  });
}

}  // namespace proxy_slow_uploads_test
