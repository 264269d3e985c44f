// Bytes pass between a client and a FastCGI application, in both directions at once.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/event.h>
#include <coir/format.h>
#include <coir/resting_wait.h>
#include <stdio.h>
#include <string.h>

#include <optional>

#include "base/buffer_pool.h"
#include "fastcgi/fast_cgi.h"
#include "proxy/upstreams/upstream.h"
#include "tests/support/far_end.h"
#include "tests/support/folder.h"
#include "tests/support/tls_pair.h"
#include "tests/unit/client/scripted_server.h"
#include "tests/unit/fastcgi/application.h"
#include "tests/unit/http/handler_server.h"

namespace fastcgi_exchange_test {

using namespace coir::test;
using coir::Address;
using coir::http::FastCgiOptions;
using coir::http::FastCgiType;

namespace {

constexpr std::size_t kContent = 900'000;
constexpr std::size_t kOutput = 4'000'000;
constexpr std::size_t kPiece = 32'000;
// An exchange that stands still is given up after it.
constexpr FastCgiOptions kRules{.first_byte = 20s, .idle = 20s};
// Their timeouts pass in a test: that for the first byte, and that for each further one.
constexpr FastCgiOptions kHaste{.first_byte = 20ms, .idle = 20s};
constexpr FastCgiOptions kNoPause{.first_byte = 20s, .idle = 20ms};
// Parameters that a client must not choose.
constexpr coir::http::FastCgiParam kOwn[] = {
    {"REMOTE_ADDR", "unknown"}, {"REMOTE_PORT", "0"}, {"HTTP_X_USER", "guest"}, {"HTTP_ACCEPT_ENCODING", ""}};
constexpr FastCgiOptions kOwnRules{.params = kOwn, .first_byte = 20s, .idle = 20s};

// Each byte of what passes tells where it stands.
char at(std::size_t place) {
  return static_cast<char>('a' + place * 7 % 26);
}

struct Passed {
  std::optional<coir::http::Upstreams> group;
  std::atomic<bool> heard_all{false};
  std::atomic<std::size_t> waiting{0};  // requests that an application has heard and does not answer before `go`
  coir::Event go;
  std::atomic<std::size_t> pieces{0};  // of content that say_script has heard
  const char* spool = nullptr;         // where pass_path keeps content
};
Passed* g_passed;

void pass(Exchange& exchange) {
  coir::http::forward_to_fastcgi(exchange, g_passed->group->group(), {.name = "/app"}, kRules);
}

// pass_path has the path be the script's name, which lies in the session's memory.
void pass_path(Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  const std::span<char> memory = exchange.path_memory();
  path.copy(memory.data(), memory.size());
  coir::http::forward_to_fastcgi(exchange, g_passed->group->group(), {.name = {memory.data(), path.size()}},
                                 {.first_byte = 20s, .idle = 20s, .keep = true, .spool = g_passed->spool});
}

// say_script answers each request by the first bytes of its script's name, once it has the content and `go` says so.
constexpr std::size_t kName = sizeof "/script0" - 1;
void say_script(Peer& peer) {
  const auto application = std::make_unique<Application>(peer);
  char memory[4096];
  std::string_view params;
  const auto keep = [&](std::string_view part) { params = {memory, part.copy(memory, sizeof memory)}; };
  while (application->hear_beginning(keep)) {
    for (;;) {
      if (application->hear() != static_cast<unsigned>(FastCgiType::input)) return;
      if (application->content().empty()) break;
      ++g_passed->pieces;
    }
    ++g_passed->waiting;
    static_cast<void>(g_passed->go.wait());
    constexpr std::string_view kKey = "SCRIPT_NAME";
    const std::size_t at = params.find(kKey);
    if (at == params.npos || !application->say("Content-Type: text/plain\n\n") ||
        !application->say(params.substr(at + kKey.size(), kName)) || !application->end()) {
      return;
    }
  }
}

void wait_and_pass(Exchange& exchange) {
  static_cast<void>(coir::sleep(1ms));
  pass(exchange);
}

void pass_with_own(Exchange& exchange) {
  coir::http::forward_to_fastcgi(exchange, g_passed->group->group(), {.name = "/app"}, kOwnRules);
}

void pass_in_haste(Exchange& exchange) {
  coir::http::forward_to_fastcgi(exchange, g_passed->group->group(), {.name = "/app"}, kHaste);
}

void pass_without_pause(Exchange& exchange) {
  coir::http::forward_to_fastcgi(exchange, g_passed->group->group(), {.name = "/app"}, kNoPause);
}

// times counts how often `text` occurs in `in`.
int times(std::string_view in, std::string_view text) {
  int count = 0;
  for (std::size_t at = in.find(text); at != in.npos; at = in.find(text, at + text.size())) ++count;
  return count;
}

// The descriptor of a client whose content comes as the wait for its hang-up is next taken back; -1: none.
std::atomic<int> g_client{-1};

// content_comes sends that client's content, and returns once the poller has told whoever sleeps on `fd`.
void content_comes(int client, int fd) {
  if (::send(client, "abc", 3, MSG_NOSIGNAL) != 3) __builtin_trap();
  char byte;
  until([&] { return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1; });
  if (!until_polled()) __builtin_trap();
}

// hear_content takes all content, and sees that it is as it was sent.
bool hear_content(Application& application, std::size_t bytes) {
  std::size_t have = 0;
  for (;;) {
    if (application.hear() != static_cast<unsigned>(FastCgiType::input)) return false;
    if (application.content().empty()) return have == bytes;
    for (const char byte : application.content()) {
      if (byte != at(have++)) return false;
    }
  }
}

bool say_output(Application& application, std::size_t bytes) {
  if (!application.say("Content-Type: text/plain\n\n")) return false;
  static thread_local char piece[kPiece];
  for (std::size_t said = 0; said < bytes;) {
    const std::size_t size = std::min(bytes - said, sizeof piece);
    for (std::size_t i = 0; i < size; ++i) piece[i] = at(said + i);
    if (!application.say({piece, size})) return false;
    said += size;
  }
  return true;
}

}  // namespace

extern "C" {
bool __real__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(coir::RestingWait& record);
bool __wrap__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(coir::RestingWait& record) {
  if (int client = g_client;
      client >= 0 && far_end(client) == record.fd && g_client.compare_exchange_strong(client, -1)) {
    content_comes(client, record.fd);
  }
  return __real__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(record);
}
}

TEST_GROUP_BASE(FastCgiExchange, HandlerServer) {
  coir::test::Folder folder;
  const char* const path = folder.at("socket");

  // through runs a client that sends and reads at the same time, beside an application of that script.
  void through(ScriptedServer::Script script) {
    serving({.handler = pass, .body_timeout = 100s}, [&](Server& server, const Address& address, Seen&) {
      Passed passed;
      g_passed = &passed;
      // A Unix socket holds a bounded number of bytes, and reports room only after a whole piece is read.
      char url[200];
      std::optional<ScriptedServer> application(std::in_place, script, path);
      passed.group.emplace(
          std::move(*coir::http::Upstreams::create(coir::format(url, "unix:", std::string_view(path)))));
      auto connected = coir::TcpStream::connect(address, soon());
      expect(connected.has_value());
      if (!connected) return;
      coir::TcpStream& stream = *connected;
      coir::Fiber sender = coir::spawn([&] {
        static char content[kContent];
        for (std::size_t i = 0; i < kContent; ++i) content[i] = at(i);
        char head[100];
        const auto said = stream.write(
            coir::format(head, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ", kContent,
                         "\r\n\r\n"),
            soon());
        expect(said && stream.write({content, kContent}, soon()));
      });
      std::size_t have = 0, right = 0;
      char piece[4096];
      std::string_view head_end = "\r\n\r\n";
      bool whole = false;
      for (;;) {
        const auto got = stream.read(piece, soon());
        if (!got) break;
        for (const char byte : std::string_view(piece, *got)) {
          if (!head_end.empty()) {
            if (byte != head_end.front()) head_end = "\r\n\r\n";
            if (byte == head_end.front()) head_end.remove_prefix(1);
          } else if (take_chunked(byte)) {
            right += byte == at(have++);
          }
        }
        whole = state_.ended;
      }
      state_ = {};
      static_cast<void>(sender.join());
      expect(whole && have == kOutput && right == kOutput);
      expect(until([&] { return passed.heard_all.load(); }, soon()));
      expect(server.stop(soon()).has_value());
      passed.group.reset();
      application.reset();
      ::unlink(path);
    });
  }

  // holding_none has exchanges wait for their applications, over new connections and over those that have rested: more than
  // may be active. With content, they wait for its last byte first, in `wait`, which gets how many were there before.
  static constexpr std::size_t kMostActive = 2, kClients = 10;
  void holding_none(const char* spool, std::string_view content, auto wait) {
    serving({.handler = pass_path, .max_active = kMostActive}, [&](Server& server, const Address& address, Seen&) {
      Passed passed;
      passed.spool = spool;
      g_passed = &passed;
      char url[200];
      std::optional<ScriptedServer> application(std::in_place, say_script, path);
      passed.group.emplace(
          std::move(*coir::http::Upstreams::create(coir::format(url, "unix:", std::string_view(path)))));
      const std::size_t used = coir::account::http.used();
      // The last to come keep theirs as long as nobody wants them, and one is left of those that were needed at once.
      const auto holds_none = [&] {
        return coir::account::http.used() - used < kClients / 2 * Server::request_bytes();
      };
      static std::array<std::optional<Client>, kClients> clients;
      for (std::size_t before = 0; before != 2 * kClients; before += kClients) {
        for (std::size_t i = 0; i < kClients; ++i) {
          char head[100];
          const std::string_view text = coir::format(
              head, "PUT /script", i, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", content.size(), "\r\n\r\n");
          expect(clients[i].emplace(address).say(text));
          if (!content.empty()) expect(clients[i]->say(content.substr(1)));
        }
        if (!content.empty()) {
          wait(passed, before);
          expect(until(holds_none, soon()));
          for (auto& client : clients) expect(client->say(content.substr(0, 1)));
        }
        expect(until([&] { return passed.waiting == before + kClients; }, soon()));
        expect(until(holds_none, soon()));
        passed.go.set();
        for (std::size_t i = 0; i < kClients; ++i) {
          char name[16];
          // To its end: a client that leaves before has the connection left, too.
          expect(clients[i]->hear(coir::format(name, "/script", i)) && clients[i]->hear("0\r\n\r\n"));
          clients[i].reset();
        }
        passed.go.reset();
        // Those that come next find all connections at rest.
        expect(until([&] { return passed.group->server(0).resting == kClients; }, soon()));
      }
      expect(application->connections() == kClients);
      expect(server.stop(soon()).has_value());
      passed.group.reset();
      application.reset();
      ::unlink(path);
    });
  }

  // take_chunked tells whether a byte of the chunked coding is content's.
  bool take_chunked(char byte) {
    if (state_.left > 2) {
      --state_.left;
      return true;
    }
    if (state_.left != 0) {
      --state_.left;  // CR LF
      return false;
    }
    if (byte == '\n') {
      if (state_.size == 0) state_.ended = true;
      state_.left = state_.size == 0 ? 0 : state_.size + 2;
      state_.size = 0;
    } else if (byte != '\r') {
      state_.size = state_.size * 16 + static_cast<std::size_t>(byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);
    }
    return false;
  }
  struct {
    std::size_t left = 0, size = 0;
    bool ended = false;
  } state_;
};

TEST(FastCgiExchange, an_application_that_writes_much_before_it_reads_is_heard_to_its_end) {
  through([](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    if (!application->hear_beginning() || !say_output(*application, kOutput)) return;
    if (hear_content(*application, kContent)) g_passed->heard_all = true;
    static_cast<void>(application->end());
    peer.until_gone();
  });
}

TEST(FastCgiExchange, an_application_that_hangs_up_behind_a_head_is_not_blamed) {
  for (const std::string_view says : {"", "Content-Type: text/plain\n\nhello"}) {
    serving({.handler = pass}, [&](Server& server, const Address& address, Seen&) {
      Passed passed;
      g_passed = &passed;
      std::optional<ScriptedServer> application(std::in_place, [says](Peer& peer) {
        const auto script = std::make_unique<Application>(peer);
        if (script->hear_beginning() && !says.empty()) script->say(says);
      });
      char url[32];
      passed.group.emplace(
          std::move(*coir::http::Upstreams::create(coir::format(url, "127.0.0.1:", application->port()))));
      coir::test::Client client(address);
      expect(client.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
      until([&] { return passed.group->server(0).cut == 1 && passed.group->state().in_use == 0; });
      expect(passed.group->group().members()[0].failures == (says.empty() ? 1u : 0u));
      client.stream.close();
      expect(server.stop(soon()).has_value());
      passed.group.reset();
      application.reset();
    });
  }
}

// php-fpm that is stopped, or has no process free, accepts all the same.
TEST(FastCgiExchange, an_application_that_says_nothing_has_failed_and_one_that_stops_midway_has_not) {
  for (const std::string_view says : {"", "X-Field: v\n"}) {
    serving({.handler = says.empty() ? pass_in_haste : pass_without_pause},
            [&](Server& server, const Address& address, Seen&) {
              Passed passed;
              g_passed = &passed;
              std::optional<ScriptedServer> application(std::in_place, [says](Peer& peer) {
                const auto script = std::make_unique<Application>(peer);
                if (!script->hear_beginning() || (!says.empty() && !script->say(says))) return;
                unsigned type = script->hear();
                if (type == static_cast<unsigned>(FastCgiType::input)) type = script->hear();
                g_passed->heard_all = type == static_cast<unsigned>(FastCgiType::abort_request);
              });
              char url[32];
              passed.group.emplace(
                  std::move(*coir::http::Upstreams::create(coir::format(url, "127.0.0.1:", application->port()))));
              coir::test::Client client(address);
              expect(client.say(kGet) && client.hear("HTTP/1.1 504 "));
              expect(passed.group->group().members()[0].failures == (says.empty() ? 1u : 0u));
              expect(until([&] { return passed.heard_all.load(); }, soon()));
              client.stream.close();
              expect(server.stop(soon()).has_value());
              passed.group.reset();
              application.reset();
            });
  }
}

TEST(FastCgiExchange, a_silent_application_has_an_exchange_hold_no_buffers) {
  holding_none(nullptr, "", [](Passed&, std::size_t) {});
}

TEST(FastCgiExchange, a_slow_upload_that_is_kept_holds_no_buffers) {
  holding_none(folder.path(), "ab", [&](Passed& passed, std::size_t before) {
    constexpr std::size_t kHeld = kClients * coir::Buffer::kLeast;
    expect(until([&] { return coir::account::buffers.used() - coir::Buffer::spare_bytes() == kHeld; }, soon()));
    expect(passed.waiting == before);
  });
}

TEST(FastCgiExchange, a_slow_upload_that_passes_holds_no_buffers) {
  holding_none(nullptr, "ab", [&](Passed& passed, std::size_t before) {
    expect(until([&] { return passed.pieces == 2 * before + kClients; }, soon()));
    expect(until([&] { return coir::account::buffers.used() == coir::Buffer::spare_bytes(); }, soon()));
  });
}

// The handler has waited, so that a wait for a hang-up sleeps on the client, and takes the news.
TEST(FastCgiExchange, content_that_comes_as_the_wait_for_it_begins_is_heard) {
  Passed passed;
  g_passed = &passed;
  const ScriptedServer upstream([](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    while (application->hear_beginning() && application->hear() == static_cast<unsigned>(FastCgiType::input) &&
           application->content() == "abc" && application->say("Content-Length: 5\n\nhello") && application->end()) {
    }
  });
  char url[32];
  passed.group.emplace(
      std::move(*coir::http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
  serving({.handler = wait_and_pass}, [&](Server&, const Address& address, Seen&) {
    Client client(address);
    g_client = client.stream.fd();
    expect(client.say("POST /app HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n"));
    expect(client.hear("\r\n\r\nhello"));
    expect(g_client == -1);
    g_client = -1;
  });
}

TEST(FastCgiExchange, a_server_that_stops_lets_a_script_answer_behind_a_handler_that_has_waited) {
  std::atomic<bool> asked{false}, go{false};
  Passed passed;
  g_passed = &passed;
  const ScriptedServer upstream([&](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    while (application->hear_beginning()) {
      asked = true;
      until([&] { return go.load(); });
      if (!application->say("Content-Length: 5\n\nhello") || !application->end()) return;
    }
  });
  char url[32];
  passed.group.emplace(
      std::move(*coir::http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
  for (const coir::http::Handler handler : {coir::http::Handler(pass), coir::http::Handler(wait_and_pass)}) {
    serving({.handler = handler}, [&](Server& server, const Address& address, Seen&) {
      asked = go = false;
      Client client(address);
      expect(client.say("GET /app HTTP/1.1\r\nHost: localhost\r\n\r\n"));
      expect(until([&] { return asked.load(); }, soon()));
      coir::test::until_polled();
      server.begin_stop();
      go = true;
      expect(client.hear("HTTP/1.1 200 ") && client.hear("Connection: close\r\n") && client.hear("hello"));
    });
  }
}

// These are more than the session's own memory has room for.
TEST(FastCgiExchange, many_short_fields_of_a_script_pass) {
  constexpr int kFields = 60;
  Passed passed;
  g_passed = &passed;
  const ScriptedServer upstream([](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    while (application->hear_beginning()) {
      for (int i = 0; i < kFields; ++i) {
        char field[16];
        static_cast<void>(application->say(coir::format(field, "X-", 100 + i, ": v\n")));
      }
      if (!application->say("Content-Length: 5\n\nhello") || !application->end()) return;
    }
  });
  char url[32];
  passed.group.emplace(
      std::move(*coir::http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
  serving({.handler = pass}, [&](Server&, const Address& address, Seen&) {
    Client client(address);
    expect(client.say("GET /app HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    expect(client.hear("\r\n\r\nhello"));
    const std::string_view heard(client.memory.data(), client.have);
    expect(heard.starts_with("HTTP/1.1 200 ") && times(heard, "\r\nX-1") == kFields);
  });
}

TEST(FastCgiExchange, a_client_cannot_set_what_the_program_sets) {
  Passed passed;
  g_passed = &passed;
  const ScriptedServer upstream([](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    const auto visit = [](std::string_view params) {
      g_passed->heard_all = times(params, "HTTP_X_USER") == 1 && times(params, "HTTP_X_USERguest") == 1 &&
                            times(params, "REMOTE_ADDR") == 1 && times(params, "REMOTE_ADDRunknown") == 1 &&
                            times(params, "REMOTE_PORT") == 1 && times(params, "HTTP_ACCEPT_ENCODING") == 1 &&
                            times(params, "HTTP_ACCEPTa/b") == 1;
    };
    while (application->hear_beginning(visit) && application->say("Content-Length: 5\n\nhello") && application->end()) {
    }
  });
  char url[32];
  passed.group.emplace(
      std::move(*coir::http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
  serving({.handler = pass_with_own}, [&](Server&, const Address& address, Seen&) {
    passed.heard_all = false;
    Client client(address);
    expect(
        client.say("GET /app HTTP/1.1\r\nHost: localhost\r\nX-User: admin\r\nAccept: a/b\r\n"
                   "Accept-Encoding: gzip\r\n\r\n"));
    expect(client.hear("\r\n\r\nhello"));
    expect(passed.heard_all);
  });
}

#if COIR_TLS
TEST(FastCgiExchange, an_early_answer_passes_a_client_that_pauses_in_its_content) {
  const auto context = authority().server(), trusts = authority().client();
  coir::TlsContextSlot slot(context);
  Passed passed;
  g_passed = &passed;
  const ScriptedServer upstream([](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    while (application->hear_beginning() && application->hear() == static_cast<unsigned>(FastCgiType::input) &&
           application->say("Content-Length: 5\n\nhello") && application->end()) {
    }
  });
  char url[32];
  passed.group.emplace(
      std::move(*coir::http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
  serving({.handler = pass}, &slot, [&](Server&, const Address& address, Seen&) {
    auto stream = coir::connect_tls(address, "board.test", trusts, soon());
    expect(stream && stream->write("POST /app HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc", soon()));
    char heard[1024];
    std::size_t have = 0;
    while (!std::string_view(heard, have).ends_with("hello")) {
      const auto got = stream ? stream->read(std::span(heard).subspan(have), soon()) : std::unexpected(coir::Error{});
      if (!got) break;
      have += *got;
    }
    expect(std::string_view(heard, have).starts_with("HTTP/1.1 200 ") &&
           std::string_view(heard, have).ends_with("hello"));
  });
}
#endif

}  // namespace fastcgi_exchange_test
