// How a client follows redirects, and what it does not take along.

#include <coir/http/client.h>

#include <CppUTest/TestHarness.h>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace client_redirect_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

Deadline patience() {
  return Deadline::after(60s);
}

// Redirecting answers "/N..." by a redirect with status N to `location`, and all else by hello. It keeps the last
// request for another path.
struct Redirecting {
  explicit Redirecting(std::string_view with_content = {})
      : server([this, with_content](Peer& peer) {
          for (;;) {
            const auto head = peer.hear();
            if (head.empty()) return;
            ++requests;
            const std::size_t slash = head.find('/');
            const std::string_view status = head.substr(slash + 1, 3);
            if (status[0] == '3') {
              if (head.find("Content-Length: 4") != head.npos) peer.hear_content(4);
              char answer[512];
              const int size =
                  snprintf(answer, sizeof answer, "HTTP/1.1 %.3s Go\r\nLocation: %s\r\nContent-Length: %zu\r\n\r\n",
                           status.data(), location, with_content.size());
              peer.say({answer, static_cast<std::size_t>(size)});
              peer.say(with_content);
            } else {
              memcpy(last.get(), head.data(), head.size());
              last[head.size()] = '\0';
              if (head.find("Content-Length: 4") != head.npos) {
                memcpy(content, peer.hear_content(4).data(), 4);
              }
              peer.say(kHello);
            }
          }
        }) {}
  std::string_view heard() const { return last.get(); }
  bool heard(std::string_view text) const { return heard().find(text) != std::string_view::npos; }

  char location[256] = "/end";
  const std::unique_ptr<char[]> last{new char[8192]{}};
  char content[5] = {};
  std::atomic<unsigned> requests{0};
  ScriptedServer server;
};

bool hello(std::expected<Response, Error>& answer) {
  if (!answer) return false;
  const auto got = answer->text();
  return got && *got == "hello";
}

}  // namespace

TEST_GROUP_BASE(ClientRedirect, coir::test::BothSides) {
  template <class Body>
  void with_client(Body body) {
    both_sides([&] {
      auto client = Client::create();
      expect(client.has_value());
      if (client) body(*client);
    });
  }
};

TEST(ClientRedirect, is_followed_over_the_same_connection) {
  with_client([&](Client& client) {
    Redirecting there("moved, says the server");
    strcpy(there.location, "../b/./end?x#y");
    auto answer = client.get(there.server.url("/302/a"), {.deadline = patience()});
    expect(hello(answer) && there.heard("GET /b/end?x HTTP/1.1\r\n"));
    expect(answer && answer->url().ends_with("/b/end?x") && there.server.connections() == 1);
  });
}

TEST(ClientRedirect, with_much_content_costs_the_connection) {
  static char much[100'000];
  memset(much, 'x', sizeof much);
  with_client([&](Client& client) {
    Redirecting there({much, sizeof much});
    auto answer = client.get(there.server.url("/302"), {.deadline = patience()});
    expect(hello(answer) && there.server.connections() == 2);
  });
}

TEST(ClientRedirect, whose_content_does_not_end_is_not_waited_for) {
  with_client([&](Client& client) {
    static char some[16 * 1024];  // as much as is read of it
    memset(some, 'x', sizeof some);
    std::atomic<unsigned> again{0};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      if (peer.number != 0) {
        peer.say(kHello);
        return;
      }
      peer.say("HTTP/1.1 302 Go\r\nLocation: /end\r\nContent-Length: 100000\r\n\r\n");
      peer.say({some, sizeof some});
      again += !peer.hear().empty();
    });
    auto answer = client.get(server.url("/"), {.deadline = patience()});
    expect(hello(answer) && server.connections() == 2 && again == 0);
  });
}

TEST(ClientRedirect, changes_the_method_as_its_status_says) {
  const auto becomes = [&](std::string_view method, const char* path, std::string_view wanted, bool with_content) {
    with_client([&](Client& client) {
      Redirecting there;
      const std::string_view content = method == "HEAD" || method == "GET" ? "" : "four";
      auto answer =
          client.request({.url = there.server.url(path), .deadline = patience(), .method = method, .content = content});
      expect(answer && answer->status() == 200 && there.heard().starts_with(wanted));
      expect((std::string_view(there.content) == "four") == with_content);
      expect(there.heard("Content-Length") == with_content);
    });
  };
  becomes("POST", "/301", "GET /end", false);
  becomes("POST", "/302", "GET /end", false);
  becomes("POST", "/303", "GET /end", false);
  becomes("PUT", "/303", "GET /end", false);
  becomes("HEAD", "/303", "HEAD /end", false);
  becomes("POST", "/307", "POST /end", true);
  becomes("PUT", "/308", "PUT /end", true);
  becomes("PUT", "/302", "PUT /end", true);
}

TEST(ClientRedirect, repeats_no_content_that_cannot_begin_again) {
  with_client([&](Client& client) {
    Redirecting there;
    Upload upload;
    upload.size = 4;
    upload.read = [](Upload&, std::span<char> into) noexcept -> std::expected<std::size_t, Error> {
      memcpy(into.data(), "four", 4);
      return 4;
    };
    const auto ask = [&](const char* path) {
      return client.request(
          {.url = there.server.url(path), .deadline = patience(), .method = "POST", .upload = &upload});
    };
    const auto refused = ask("/307");
    expect(!refused && refused.error() == ErrorCode::protocol && there.requests == 1);
    auto answer = ask("/303");
    expect(hello(answer));
  });
}

TEST(ClientRedirect, is_counted_per_request) {
  with_client([&](Client& client) {
    Redirecting there;
    strcpy(there.location, "/302/again");
    for (int i = 0; i < 3; ++i) {
      there.requests = 0;
      const auto answer = client.get(there.server.url("/302"), {.deadline = patience(), .max_redirects = 4});
      expect(!answer && answer.error() == ErrorCode::limit && there.requests == 5);
    }
    const auto asked = client.get(there.server.url("/302"), {.deadline = patience(), .max_redirects = 0});
    expect(asked && asked->status() == 302);
  });
}

TEST(ClientRedirect, is_counted_beyond_a_byte) {
  with_client([&](Client& client) {
    Redirecting there;
    strcpy(there.location, "/302/again");
    const auto answer = client.get(there.server.url("/302"), {.deadline = patience(), .max_redirects = 255});
    expect(!answer && answer.error() == ErrorCode::limit && there.requests == 256);
  });
}

TEST(ClientRedirect, without_a_place_to_go_to_is_the_answer_or_an_error) {
  with_client([&](Client& client) {
    const ScriptedServer none(coir::test::answer_all("HTTP/1.1 302 Go\r\nContent-Length: 0\r\n\r\n"));
    const auto answer = client.get(none.url("/"), {.deadline = patience()});
    expect(answer && answer->status() == 302);
    const ScriptedServer empty(coir::test::answer_all("HTTP/1.1 302 Go\r\nLocation: \r\nContent-Length: 0\r\n\r\n"));
    const auto here = client.get(empty.url("/"), {.deadline = patience()});
    expect(here && here->status() == 302);
    for (const char* const bad : {"ftp://h/", "http://", "http://h:99999/", "http://a b/"}) {
      Redirecting there;
      strcpy(there.location, bad);
      const auto refused = client.get(there.server.url("/302"), {.deadline = patience()});
      expect(!refused && refused.error() == ErrorCode::protocol);
    }
  });
}

TEST(ClientRedirect, to_another_origin_drops_secrets_for_good) {
  with_client([&](Client& client) {
    Redirecting first;
    Redirecting second;
    const RequestField fields[] = {{"Authorization", "Bearer 1"},
                                   {"cookie", "a=b"},
                                   {"Proxy-Authorization", "x"},
                                   {"X-Key", "secret", true},
                                   {"X-Plain", "yes"}};
    const auto secrets = [](const Redirecting& heard) {
      return heard.heard("Bearer") + heard.heard("a=b") + heard.heard("Proxy-Authorization") + heard.heard("X-Key");
    };
    const ClientRequest with{.deadline = patience(), .fields = fields};
    // The same origin is told all.
    auto answer = client.get(first.server.url("/302"), with);
    expect(hello(answer) && secrets(first) == 4 && first.heard("X-Plain: yes"));
    // Another port is another origin.
    memcpy(first.location, second.server.url("/end").data(), 100);
    answer = client.get(first.server.url("/302"), with);
    expect(hello(answer) && secrets(second) == 0 && second.heard("X-Plain: yes"));
    // And back again: the first has sent its secrets away, and gets none back.
    memcpy(first.location, second.server.url("/302").data(), 100);
    memcpy(second.location, first.server.url("/end").data(), 100);
    answer = client.get(first.server.url("/302"), with);
    expect(hello(answer) && secrets(first) == 0);
    // A redirect within the other origin restores nothing.
    memcpy(first.location, second.server.url("/302").data(), 100);
    memcpy(second.location, second.server.url("/end").data(), 100);
    answer = client.get(first.server.url("/302"), with);
    expect(hello(answer) && secrets(second) == 0 && second.heard("X-Plain: yes"));
  });
}

TEST(ClientRedirect, keeps_the_url_s_credentials_until_the_origin_changes) {
  with_client([&](Client& client) {
    Redirecting first;
    Redirecting second;
    char text[64];
    const int size = snprintf(text, sizeof text, "http://ann:pw@127.0.0.1:%u/302", first.server.port());
    const std::string_view url(text, static_cast<std::size_t>(size));
    auto answer = client.get(url, {.deadline = patience()});
    expect(hello(answer) && first.heard("Authorization: Basic YW5uOnB3\r\n"));
    memcpy(first.location, second.server.url("/302").data(), 100);
    memcpy(second.location, second.server.url("/end").data(), 100);
    answer = client.get(url, {.deadline = patience()});
    expect(hello(answer) && !second.heard("Authorization"));
  });
}

TEST(ClientRedirect, takes_no_host_of_the_callers_to_another_origin) {
  with_client([&](Client& client) {
    Redirecting first;
    Redirecting second;
    const RequestField host[] = {{"Host", "board.example"}};
    memcpy(first.location, second.server.url("/end").data(), 100);
    auto answer = client.get(first.server.url("/302"), {.deadline = patience(), .fields = host});
    expect(hello(answer) && second.heard("\r\nHost: 127.0.0.1:") && !second.heard("board.example"));
  });
}

TEST(ClientRedirect, waits_for_no_content_that_does_not_come) {
  both_sides([&] {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      if (peer.number != 0) {
        peer.say(kHello);
        return;
      }
      peer.say("HTTP/1.1 302 Go\r\nLocation: /end\r\nContent-Length: 5\r\n\r\nx");
      peer.until_gone();
    });
    auto client = Client::create({.timeouts = {.between_bytes = 1h}});
    auto response = client->get(server.url("/302"), {.deadline = patience()});
    expect(response && response->status() == 200 && server.connections() == 2);
  });
}

}  // namespace client_redirect_test
