// Responses whose clients are slow: nothing of them is held but a pair of records, and they come whole when the client goes on.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/chunked.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>

#include "proxy/forward_keeper.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_slow_readers_test {

using namespace coir::test;
using coir::Address;

namespace {

constexpr int kSlow = 6;  // more than there are places
constexpr std::string_view kFine = "GET /fine HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::size_t kShort = 512 * 1024;
constexpr std::size_t kBrief =
    8192;  // more than a session's output with a head holds, and no more than stays behind unpeeked

char byte_at(std::size_t at) {
  return static_cast<char>(at % 251);
}

// Bulk is an upstream that answers /N with N bytes, framed as the test says, and anything else with hello. It hangs up behind
// `most` bytes. If it `pauses`, it waits for `goes_on` behind the first piece.
struct Bulk {
  enum class Framing { length, chunked, close } framing = Framing::length;
  std::size_t most = SIZE_MAX;
  std::string_view behind_chunks = "0\r\n\r\n";
  bool pauses = false;
  std::atomic<bool> goes_on{false};

  ScriptedServer::Script script() {
    return [this](Peer& peer) {
      for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
        const auto size = static_cast<std::size_t>(atol(head.data() + 5));
        if (size == 0) {
          if (!peer.say(kHello)) return;
        } else if (!answer(peer, size) || framing == Framing::close) {
          return;
        }
      }
    };
  }
  bool answer(Peer& peer, std::size_t size) {
    char line[128];
    peer.say("HTTP/1.1 200 OK\r\n");
    if (framing == Framing::length) peer.say(coir::format(line, "Content-Length: ", size, "\r\n\r\n"));
    if (framing == Framing::chunked) peer.say("Transfer-Encoding: chunked\r\n\r\n");
    if (framing == Framing::close) peer.say("Connection: close\r\n\r\n");
    char piece[4096];
    for (std::size_t at = 0; at < size; at += sizeof piece) {
      if (at >= most) return peer.hang_up(), false;
      if (pauses && at == sizeof piece) until([this] { return goes_on.load(); }, soon());
      for (std::size_t i = 0; i < sizeof piece; ++i) piece[i] = byte_at(at + i);
      if (framing == Framing::chunked && !peer.say("1000\r\n")) return false;
      if (!peer.say({piece, sizeof piece})) return false;
      if (framing == Framing::chunked && !peer.say("\r\n")) return false;
    }
    if (framing == Framing::chunked) return peer.say(behind_chunks);
    if (framing == Framing::close) peer.hang_up();
    return true;
  }
};

// SlowReader asks for content and reads nothing before it is told to.
struct SlowReader {
  Client client;

  char trailers[256];
  std::size_t trailer_bytes = 0;

  explicit SlowReader(const Address& to) : client(to) {}
  SlowReader(const Address& to, std::size_t size, std::string_view fields = "") : client(to) { ask(size, fields); }
  void ask(std::size_t size, std::string_view fields = "") {
    char request[128];
    client.say(coir::format(request, "GET /", size, " HTTP/1.1\r\nHost: t\r\n", fields, "\r\n"));
  }
  // reads_all tells whether content of that size comes whole and right.
  bool reads_all(std::size_t size) {
    if (!client.hear("\r\n\r\n")) return false;
    const std::string_view heard = heard_by(client);
    const std::size_t head = heard.find("\r\n\r\n") + 4;
    const bool chunked = heard.substr(0, head).find("chunked") != heard.npos;
    static char bytes[16384];
    std::size_t have = heard.size() - head, at = 0;
    memcpy(bytes, heard.data() + head, have);
    client.have = 0;
    coir::http::ChunkedDecoder decoder;
    for (bool whole = false;;) {
      if (chunked) {
        const auto decoded = decoder.decode({bytes, have}, {}, trailers);
        whole = decoded.state == coir::http::ChunkedState::done;
        have = decoded.data_bytes;
        trailer_bytes = decoder.trailer_bytes();
      }
      for (std::size_t i = 0; i < have; ++i, ++at) {
        if (bytes[i] != byte_at(at)) return false;
      }
      if (chunked ? whole : at >= size) return at == size;
      // Sizes that fit no chunk.
      const auto got = client.stream.read(std::span(bytes).first(1 + at * 7 % (sizeof bytes - 1)), soon());
      if (!got) return false;
      have = *got;
    }
  }
};

// tells_unsent is false under emulators that do not pass the question on.
bool tells_unsent() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int unsent = 0;
  const bool tells = ::ioctl(fd, SIOCOUTQNSD, &unsent) == 0;
  ::close(fd);
  return tells;
}

// server_side is the descriptor at which the server serves a client.
int server_side(const Client& client) {
  sockaddr_in own{}, peer{};
  socklen_t size = sizeof own;
  ::getsockname(client.stream.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  for (int fd = 0; fd < 1024; ++fd) {
    size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.sin_port == own.sin_port) return fd;
  }
  return -1;
}

// fill sends a client so much by the server's descriptor that the kernel takes no more, and returns how much. The client's
// window is closed once none of what the kernel holds is under way.
std::size_t fill(const Client& client) {
  const int fd = server_side(client);
  static const char bytes[4096] = {};
  std::size_t filled = 0;
  const auto is_full = [&] {
    for (ssize_t sent; (sent = ::send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) {
      filled += static_cast<std::size_t>(sent);
    }
    int held = 0, unsent = 0;
    return ::ioctl(fd, SIOCOUTQ, &held) == 0 && ::ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && held != 0 && held == unsent;
  };
  until(is_full, soon());
  return filled;
}

}  // namespace

TEST_GROUP_BASE(ProxySlowReaders, Gateway) {
  // slowly has the server accept connections whose sockets take little, and tells where.
  Address slowly(Server& server) {
    auto listener = coir::TcpListener::listen(*Address::parse("127.0.0.1:0"), {.unsent_bytes = 4096});
    const Address address = listener->local_address();
    expect(server.add(std::move(*listener)).has_value());
    return address;
  }
  // rest waits until so many responses rest.
  bool rest(Server& server, Stage& stage, std::size_t streams) {
    return until([&] { return stage.forwarder->streams() == streams && server.gauges().active == 0; }, soon());
  }
  // gets_behind_unread asks for content while what the client has not read fills its socket, and has it read once the response
  // rests and the upstream has gone on.
  bool gets_behind_unread(Server& server, Stage& stage, Bulk& bulk, std::size_t size) {
    SlowReader reader(slowly(server));
    Client& client = reader.client;
    if (!client.say(kFine) || !client.hear("hello") || !rest(server, stage, 0)) return false;
    client.have = 0;
    std::size_t unread = fill(client);
    reader.ask(size);
    if (unread == 0 || !rest(server, stage, 1)) return false;
    bulk.goes_on = true;
    for (char bytes[4096]; unread != 0;) {
      const auto got = client.stream.read(std::span(bytes).first(std::min(unread, sizeof bytes)), soon());
      if (!got) return false;
      unread -= *got;
    }
    return reader.reads_all(size) && client.say(kFine) && client.hear("hello") && rest(server, stage, 0);
  }
};

TEST(ProxySlowReaders, hold_no_place_and_no_buffer_while_nothing_moves) {
  Bulk bulk;
  ServerOptions options;
  options.max_active = 2;
  through(bulk.script(), {}, options, [&](Server& server, const Address&, Stage& stage) {
    const Address address = slowly(server);
    const auto buffers = [] { return coir::account::buffers.used() - coir::Buffer::spare_bytes(); };
    const std::size_t buffers_before = buffers(), streams_before = coir::account::streams.used();
    static std::array<std::optional<SlowReader>, kSlow> readers;
    for (auto& reader : readers) reader.emplace(address, kShort);
    expect(rest(server, stage, kSlow));
    expect(buffers() == buffers_before);
    expect(coir::account::streams.used() - streams_before == kSlow * sizeof(coir::http::ForwardPair));
    Client other(address);
    expect(other.say(kFine) && other.hear("hello"));
    for (auto& reader : readers) expect(reader->reads_all(kShort));
    // Behind its response each connection is as before.
    for (auto& reader : readers) expect(reader->client.say(kFine) && reader->client.hear("hello"));
    expect(rest(server, stage, 0));
    for (auto& reader : readers) reader.reset();
    expect(stage.forwarder->counters().cut.load() == 0 && stage.forwarder->counters().cancelled.load() == 0);
  });
}

TEST(ProxySlowReaders, get_content_of_each_framing_whole) {
  for (const auto framing : {Bulk::Framing::length, Bulk::Framing::chunked, Bulk::Framing::close}) {
    Bulk bulk{framing};
    through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
      SlowReader reader(slowly(server), kShort);
      expect(rest(server, stage, 1) && reader.reads_all(kShort));
      expect(reader.client.say(kFine) && reader.client.hear("hello") && rest(server, stage, 0));
    });
  }
}

TEST(ProxySlowReaders, get_content_whole_behind_a_response_that_they_have_not_read) {
  if (!tells_unsent()) return;
  for (const auto framing : {Bulk::Framing::length, Bulk::Framing::chunked, Bulk::Framing::close}) {
    for (const std::size_t size : {kBrief, kShort}) {
      Bulk bulk{framing};
      through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
        expect(gets_behind_unread(server, stage, bulk, size));
        expect(stage.forwarder->counters().cut.load() == 0 && stage.forwarder->counters().cancelled.load() == 0);
      });
    }
  }
}

TEST(ProxySlowReaders, get_a_tail_whole_within_which_the_upstream_pauses) {
  if (!tells_unsent()) return;
  for (const auto framing : {Bulk::Framing::length, Bulk::Framing::chunked, Bulk::Framing::close}) {
    Bulk bulk{framing};
    bulk.pauses = true;
    through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
      bulk.goes_on = false;
      expect(gets_behind_unread(server, stage, bulk, kBrief));
    });
  }
}

TEST(ProxySlowReaders, get_the_trailers_that_they_take) {
  const std::array<std::string_view, 1> drops = {"X-Own"};
  Bulk bulk{Bulk::Framing::chunked};
  bulk.behind_chunks = "0\r\nX-Sum: 12\r\nX-Own: 3\r\nContent-Length: 4\r\nX-Last: yes\r\n\r\n";
  through(bulk.script(), {.response_drops = drops}, {}, [&](Server& server, const Address&, Stage& stage) {
    SlowReader reader(slowly(server), kShort, "TE: trailers\r\n");
    expect(rest(server, stage, 1) && reader.reads_all(kShort));
    expect(std::string_view(reader.trailers, reader.trailer_bytes) == "X-Sum: 12\rX-Last: yes\r");
    expect(reader.client.say(kFine) && reader.client.hear("hello") && rest(server, stage, 0));
  });
}

TEST(ProxySlowReaders, one_that_reads_nothing_is_left_behind_its_time) {
  Bulk bulk;
  through(bulk.script(), {}, {.write_timeout = 200ms}, [&](Server& server, const Address&, Stage& stage) {
    SlowReader reader(slowly(server), kShort);
    expect(until([&] { return stage.forwarder->counters().cancelled.load() == 1; }, soon()) && rest(server, stage, 0));
    expect(!reader.reads_all(kShort));
  });
}

TEST(ProxySlowReaders, one_that_vanishes_has_its_upstream_left) {
  Bulk bulk;
  through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
    SlowReader reader(slowly(server), kShort);
    expect(rest(server, stage, 1));
    reader.client.reset();
    expect(rest(server, stage, 0));
  });
}

TEST(ProxySlowReaders, see_that_a_response_is_cut_off) {
  for (const auto framing : {Bulk::Framing::length, Bulk::Framing::chunked}) {
    Bulk bulk{framing, kShort / 2};
    through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
      SlowReader reader(slowly(server), kShort);
      expect(rest(server, stage, 1) && !reader.reads_all(kShort) && rest(server, stage, 0));
      expect(stage.forwarder->counters().cut.load() == 1);
    });
  }
}

TEST(ProxySlowReaders, a_server_that_stops_passes_their_responses_on) {
  Bulk bulk;
  through(bulk.script(), {}, {}, [&](Server& server, const Address&, Stage& stage) {
    SlowReader reader(slowly(server), kShort);
    expect(rest(server, stage, 1));
    server.begin_stop();
    expect(!server.stopped() && stage.forwarder->streams() == 1);
    expect(reader.reads_all(kShort) && rest(server, stage, 0));
  });
}

TEST(ProxySlowReaders, one_that_reads_nothing_is_left_by_a_server_that_stops) {
  Bulk bulk;
  through(bulk.script(), {}, {.write_timeout = 500ms}, [&](Server& server, const Address&, Stage& stage) {
    SlowReader reader(slowly(server), kShort);
    expect(rest(server, stage, 1) && server.stop(soon()).has_value());
    expect(stage.forwarder->counters().cancelled.load() == 1 && !reader.reads_all(kShort));
  });
}

}  // namespace proxy_slow_readers_test
