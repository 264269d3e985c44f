// Want of memory or descriptors at any one point of what passes between a client and a FastCGI application: the n-th charge
// to the ledger is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until an exchange meets
// none. The client is refused or its connection ends, never left waiting, and never takes a part for the whole; the next
// is served as if nothing had been; nothing is left over.

#include <optional>

#include "fastcgi/fast_cgi.h"
#include "fastcgi/record.h"
#include "tests/support/folder.h"
#include "tests/unit/http/faulty_streams.h"
#include "tests/unit/proxy/plain_upstream.h"

namespace fastcgi_faults_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLong = 200'000;
constexpr std::size_t kPiece = 50'000;

std::optional<Upstreams> g_upstreams;
std::atomic<int> g_complaints;

void complain(std::string_view) noexcept {
  ++g_complaints;
}

bool forward(Exchange& exchange) {
  if (!exchange.request().path.starts_with("/app/")) return false;
  const bool keeps = exchange.request().path.starts_with("/app/kept");
  const FastCgiOptions rules{
      .first_byte = 20s, .idle = 20s, .keep = true, .spool = keeps ? ram_folder() : nullptr, .complain = complain};
  forward_to_fastcgi(exchange, g_upstreams->group(), {.name = "/app", .info = exchange.request().path.substr(4)},
                     rules);
  return true;
}

// Application serves a connection by records, with nothing of coir's reader.
class Application {
 public:
  explicit Application(int fd) : fd_(fd) {}

  // serve_one answers a request. False: the connection is over.
  bool serve_one() {
    if (!hear(FastCgiType::begin_request)) return false;
    const bool keep = (content_[2] & 1) != 0;
    std::size_t have = 0;
    do {
      if (!hear(FastCgiType::params) || have + size_ > sizeof params_) return false;
      memcpy(params_ + have, content_, size_);
      have += size_;
    } while (size_ != 0);
    const std::string_view params(params_, have);
    const auto asked = [&](std::string_view what) { return params.find(what) != params.npos; };
    if (asked("/app/both")) return both_ways() && end() && keep;
    if (!drain()) return false;
    if (asked("/app/long")) return say("Content-Length: 200003\n\n") && say_long() && say("end") && end() && keep;
    if (asked("/app/errors") && !say("it went wrong\n", FastCgiType::errors)) return false;
    return say("Content-Length: 5\n\nhello") && end() && keep;
  }

 private:
  bool hear(FastCgiType type) {
    unsigned char head[kFastCgiHeader];
    if (!PlainUpstream::hear(fd_, head, sizeof head)) return false;
    id_ = static_cast<std::uint16_t>(head[2] << 8 | head[3]);
    size_ = static_cast<std::size_t>(head[4] << 8 | head[5]);
    return PlainUpstream::hear(fd_, content_, size_ + head[6]) && head[1] == static_cast<unsigned>(type);
  }
  bool drain() {
    do {
      if (!hear(FastCgiType::input)) return false;
    } while (size_ != 0);
    return true;
  }
  bool say(std::string_view text, FastCgiType type = FastCgiType::output) {
    char head[kFastCgiHeader];
    write_fastcgi_header(head, type, id_, text.size());
    return PlainUpstream::say(fd_, {head, sizeof head}) && PlainUpstream::say(fd_, text);
  }
  bool say_long() {
    for (std::size_t said = 0; said < kLong; said += kPiece) {
      if (!say({large, kPiece})) return false;
    }
    return true;
  }
  bool both_ways() {
    if (!say("Content-Length: 200003\n\n") || !hear(FastCgiType::input)) return false;
    return say_long() && drain() && say("end");
  }
  bool end() { return say({"\0\0\0\0\0\0\0\0", 8}, FastCgiType::end_request); }

  const int fd_;
  std::uint16_t id_ = 0;
  std::size_t size_ = 0;
  char params_[8192];
  char content_[65'535 + 255];
};

void serve(int fd) {
  const auto application = std::make_unique<Application>(fd);
  while (application->serve_one()) {
  }
}

std::optional<PlainUpstream> g_application;

bool gets(StreamPeer& peer) {
  return peer.say("GET /app/ HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200") && peer.hears("hello");
}

constexpr StreamLife kLives[] = {
    {"a request and another", gets, gets},
    {"an upload",
     [](StreamPeer& peer) {
       return peer.say("POST /app/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n") &&
              peer.say({large, kLong});
     },
     [](StreamPeer& peer) { return peer.hears_head("200") && peer.hears("hello"); }},
    {"content that is kept",
     [](StreamPeer& peer) {
       return peer.say("POST /app/kept HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n") &&
              peer.say({large, kLong});
     },
     [](StreamPeer& peer) { return peer.hears_head("200") && peer.hears("hello"); }},
    {"a long response",
     [](StreamPeer& peer) {
       return peer.say("GET /app/long HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200");
     },
     [](StreamPeer& peer) { return peer.finds("xend"); }},
    // More than is read before an answer that comes without it.
    {"content both ways",
     [](StreamPeer& peer) {
       return peer.say("POST /app/both HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nfirst") &&
              peer.hears_head("200") && peer.hears("x");
     },
     [](StreamPeer& peer) { return peer.say({large, 99'995}) && peer.finds("xend"); }},
    {"a complaint",
     [](StreamPeer& peer) {
       return peer.say("GET /app/errors HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200");
     },
     [](StreamPeer& peer) { return peer.hears("hello"); }},
};

}  // namespace

struct FastCgiFaultsServer : FaultyStreams {
  bool prepare() override {
    char url[40];
    snprintf(url, sizeof url, "http://127.0.0.1:%u", g_application->port());
    auto upstreams = Upstreams::create(url);
    if (!upstreams) return false;
    g_upstreams.emplace(std::move(*upstreams));
    site.also = forward;
    return true;
  }
  void release() override {
    g_upstreams.reset();
    LONGS_EQUAL(0, coir::account::buffers.used() - coir::Buffer::spare_bytes());
  }
  std::size_t kept() const override { return 0; }
  void setup() override {
    FaultyStreams::setup();
    g_application.emplace(serve);
  }
  void teardown() override {
    FaultyStreams::teardown();
    g_application.reset();
  }
};

TEST_GROUP_BASE(FastCgiFaults, FastCgiFaultsServer) {};

TEST(FastCgiFaults, any_failure_ends_one_exchange) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send});
  CHECK_TRUE(g_complaints > 0);
}

}  // namespace fastcgi_faults_test
