// Requests and responses of coir/http/client.h, from a thread and from fibers.

#include <coir/http/client.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/detail/accounts.h>
#if COIR_JSON
#include <coir/json.h>
#endif

#include "tests/support/both_sides.h"
#include "tests/support/folder.h"
#include "tests/support/until.h"
#include "tests/unit/client/scripted_server.h"

namespace client_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::answer_all;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

Deadline patience() {
  return Deadline::after(60s);
}

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Name: board\r\n\r\nhello";

// failed is the error of a request that must fail.
Error failed(const std::expected<Response, Error>& answer) {
  return answer ? Error(ErrorCode::busy) : answer.error();
}

template <class T>
bool is(const std::expected<T, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

bool says(std::expected<Response, Error>& answer, std::string_view text) {
  if (!answer) return false;
  const auto got = answer->text();
  return got && *got == text;
}

}  // namespace

TEST_GROUP_BASE(Client, coir::test::BothSides) {
  // with_client runs the body on both sides with a client of its own, of which nothing may be left.
  template <class Body>
  void with_client(const ClientOptions& options, Body body) {
    both_sides([&] {
      const std::size_t connections = coir::account::connections.used();
      const std::size_t http = coir::account::http.used();
      {
        auto client = Client::create(options);
        expect(client.has_value());
        if (client) body(*client);
      }
      expect(coir::account::connections.used() == connections);
      expect(coir::account::http.used() == http);
    });
  }
  // error_of_answer is what a request ends with, or its content, if all that the server says is `answer`.
  template <class Check>
  void with_answer(std::string_view answer, Check check) {
    with_client({}, [&](Client& client) {
      const ScriptedServer server([&](Peer& peer) {
        if (!peer.hear().empty()) peer.say(answer);
      });
      auto response = client.get(server.url("/"), {.deadline = patience()});
      check(response);
    });
  }
};

TEST(Client, gets_a_response) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    auto response = client.get(server.url("/status"), {.deadline = patience()});
    expect(response && response->status() == 200 && response->reason() == "OK");
    expect(response && response->header("x-name") == "board" && response->content_length() == 5);
    expect(says(response, "hello"));
  });
}

TEST(Client, sends_what_it_was_asked_to) {
  with_client({}, [&](Client& client) {
    char head[1024] = {};
    char content[16] = {};
    {
      const ScriptedServer server([&](Peer& peer) {
        const auto heard = peer.hear();
        memcpy(head, heard.data(), heard.size());
        const auto sent = peer.hear_content(4);
        memcpy(content, sent.data(), sent.size());
        peer.say(kHello);
      });
      const RequestField fields[] = {{"X-Device", "7"}};
      auto response = client.patch(server.url("/a%20b?c=d#e"), "{..}", "application/json",
                                   {.deadline = patience(), .fields = fields});
      expect(says(response, "hello"));
    }
    const std::string_view heard(head);
    expect(heard.starts_with("PATCH /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:"));
    expect(heard.find("\r\nX-Device: 7\r\n") != heard.npos);
    expect(heard.find("\r\nContent-Type: application/json\r\nContent-Length: 4\r\n") != heard.npos);
    expect(std::string_view(content) == "{..}");
  });
}

TEST(Client, announces_content_where_the_method_has_some) {
  with_client({}, [&](Client& client) {
    std::atomic<int> announced{0}, typed{0};
    const ScriptedServer server([&](Peer& peer) {
      for (std::string_view head; !(head = peer.hear()).empty();) {
        announced += head.find("\r\nContent-Length: 0\r\n") != head.npos;
        typed += head.find("\r\nContent-Type:") != head.npos;
        if (!peer.say(kHello)) return;
      }
    });
    auto response = client.post(server.url("/"), "", "text/plain", {.deadline = patience()});
    expect(says(response, "hello") && announced == 1 && typed == 0);
    response = client.put(server.url("/"), "", "text/plain", {.deadline = patience()});
    expect(says(response, "hello") && announced == 2 && typed == 0);
    response = client.patch(server.url("/"), "", "text/plain", {.deadline = patience()});
    expect(says(response, "hello") && announced == 3 && typed == 0);
    response = client.get(server.url("/"), {.deadline = patience()});
    expect(says(response, "hello") && announced == 3 && typed == 0);
  });
}

TEST(Client, refuses_fields_that_would_split_the_request) {
  with_client({}, [&](Client& client) {
    using namespace std::string_view_literals;
    for (const RequestField& bad : {RequestField{"A", "b\r\nC: d"},
                                    {"A", "b\nc"},
                                    {"A", "b\0c"sv},
                                    {"A b", "c"},
                                    {"", "c"},
                                    {"A\r\n", "c"},
                                    {"Content-Length", "5"},
                                    {"transfer-encoding", "chunked"},
                                    {"Keep-Alive", "timeout=9"},
                                    {"Connection", "close"}}) {
      expect(failed(client.get("http://127.0.0.1:1/", {.fields = {&bad, 1}})) == ErrorCode::invalid);
    }
    expect(failed(client.get("http://127.0.0.1:1/a b")) == ErrorCode::invalid);
    expect(failed(client.get("http://127.0.0.1:1/a\r\nX: y")) == ErrorCode::invalid);
    expect(failed(client.get("ftp://127.0.0.1:1/")) == ErrorCode::unsupported);
    expect(failed(client.request({.url = "http://127.0.0.1:1/", .method = "GET /"})) == ErrorCode::invalid);
    expect(failed(client.request({.url = "http://127.0.0.1:1/", .method = "CONNECT"})) == ErrorCode::invalid);
    expect(failed(client.post("http://127.0.0.1:1/", "x", "a\r\nb")) == ErrorCode::invalid);
    expect(failed(client.get("http://127.0.0.1:1/", {.range = ByteRange{}, .if_range = "a\r\nb"})) ==
           ErrorCode::invalid);
    Upload without_read;
    expect(failed(client.request({.url = "http://127.0.0.1:1/", .method = "PUT", .upload = &without_read})) ==
           ErrorCode::invalid);
  });
}

TEST(Client, refuses_credentials_that_do_not_fit) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    char user[193];
    memset(user, 'u', sizeof user);
    // A name and its colon take 192 bytes at most.
    for (const int size : {191, 192}) {
      char url[256];
      snprintf(url, sizeof url, "http://%.*s@127.0.0.1:%u/", size, user, server.port());
      auto response = client.get(url, {.deadline = patience()});
      expect(size == 191 ? says(response, "hello") : failed(response) == ErrorCode::invalid);
    }
  });
}

TEST(Client, reads_chunks) {
  with_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: v\r\n\r\n",
              [&](auto& response) { expect(says(response, "hello")); });
}

TEST(Client, reads_until_the_connection_ends) {
  with_answer("HTTP/1.0 200 OK\r\n\r\nhello", [&](auto& response) {
    expect(response && !response->content_length());
    expect(says(response, "hello"));
  });
}

TEST(Client, tells_content_that_was_cut_off) {
  for (const std::string_view cut : {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
                                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    with_answer(cut, [&](auto& response) {
      expect(response.has_value());
      const auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
      expect(!text && text.error() == ErrorCode::truncated);
    });
  }
  with_answer("HTTP/1.1 200 OK\r\nContent-Le",
              [&](auto& response) { expect(failed(response) == ErrorCode::truncated); });
}

TEST(Client, refuses_what_two_readers_would_read_differently) {
  for (const std::string_view bad :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n 5\r\n\r\nhello",
        "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200\r\n\r\n"}) {
    with_answer(bad, [&](auto& response) { expect(failed(response) == ErrorCode::protocol); });
  }
  with_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", [&](auto& response) {
    const auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
    expect(!text && text.error() == ErrorCode::protocol);
  });
}

TEST(Client, takes_a_head_without_reason_and_with_folded_lines) {
  with_answer("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
              [&](auto& response) { expect(says(response, "hello")); });
  with_answer("HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\nContent-Length: 5\r\n\r\nhello", [&](auto& response) {
    expect(response && response->header("X-A") == "one   two");
    expect(says(response, "hello"));
  });
}

TEST(Client, knows_which_responses_have_no_content) {
  for (const std::string_view none :
       {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"}) {
    with_client({}, [&](Client& client) {
      const ScriptedServer server(answer_all(none));
      for (int i = 0; i < 2; ++i) {
        auto response = client.get(server.url("/"), {.deadline = patience()});
        expect(says(response, ""));
      }
      expect(server.connections() == 1);
    });
  }
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
    auto response = client.head(server.url("/"), {.deadline = patience()});
    expect(response && response->content_length() == 5);
    expect(says(response, ""));
    expect(client.resting() == 1);
  });
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all("HTTP/1.1 200 OK\r\n\r\n"));
    auto response = client.head(server.url("/"), {.deadline = patience()});
    expect(response && !response->content_length());
  });
}

TEST(Client, passes_over_interim_responses_but_not_for_ever) {
  with_answer(
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
      "5\r\n\r\nhello",
      [&](auto& response) { expect(says(response, "hello")); });
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      while (peer.say("HTTP/1.1 103 Early Hints\r\n\r\n")) {
      }
    });
    expect(failed(client.get(server.url("/"), {.deadline = patience()})) == ErrorCode::protocol);
  });
  // Sixteen are the most.
  for (const int interim : {16, 17}) {
    with_client({}, [&](Client& client) {
      const ScriptedServer server([&](Peer& peer) {
        peer.hear();
        for (int i = 0; i < interim; ++i) peer.say("HTTP/1.1 103 Early Hints\r\n\r\n");
        peer.say(kHello);
      });
      auto response = client.get(server.url("/"), {.deadline = patience()});
      expect(says(response, "hello") == (interim == 16));
    });
  }
  with_answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
              [&](auto& response) { expect(failed(response) == ErrorCode::protocol); });
}

TEST(Client, bounds_heads_and_texts) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\n");
      while (peer.say("X-Filler: 0123456789012345678901234567890123456789\r\n")) {
      }
    });
    expect(failed(client.get(server.url("/"), {.deadline = patience()})) == ErrorCode::limit);
  });
  // A head of 100 fields and 10 KB is read.
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n");
      for (int i = 0; i < 100; ++i) {
        peer.say("X-Filler: 01234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n");
      }
      peer.say("X-Last: yes\r\n\r\nhello");
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    expect(response && response->header("X-Last") == "yes" && response->headers().size() == 102);
    expect(says(response, "hello"));
  });
  // A head of 47 KB is read, one of 49 KB is not.
  for (const std::size_t kilobytes : {47u, 49u}) {
    with_client({}, [&](Client& client) {
      const ScriptedServer server([&](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Filler: ");
        char filler[1024];
        memset(filler, 'x', sizeof filler);
        for (std::size_t i = 0; i < kilobytes; ++i) peer.say({filler, sizeof filler});
        peer.say("\r\n\r\nhello");
      });
      auto response = client.get(server.url("/"), {.deadline = patience()});
      if (kilobytes == 47) {
        expect(says(response, "hello"));
      } else {
        expect(failed(response) == ErrorCode::limit);
      }
    });
  }
  for (const std::string_view answer : {kHello, std::string_view("HTTP/1.0 200 OK\r\n\r\nhello")}) {
    for (const std::size_t most : {4u, 5u}) {
      with_answer(answer, [&](auto& response) {
        const auto text = response ? response->text(most) : std::unexpected(Error(ErrorCode::busy));
        expect(most == 5 ? text && *text == "hello" : is(text, ErrorCode::limit));
      });
    }
  }
}

TEST(Client, collects_a_text_whose_length_nobody_says) {
  with_client({}, [&](Client& client) {
    constexpr std::size_t kBytes = 50'000;
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.0 200 OK\r\n\r\n");
      const std::unique_ptr<char[]> content{new char[kBytes]};
      for (std::size_t at = 0; at < kBytes; ++at) content[at] = static_cast<char>(at % 251);
      peer.say({content.get(), kBytes});
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    const auto text = response ? response->text(kBytes) : std::unexpected(Error(ErrorCode::busy));
    bool right = text && text->size() == kBytes;
    for (std::size_t at = 0; right && at < kBytes; ++at) right = (*text)[at] == static_cast<char>(at % 251);
    expect(right);
  });
}

TEST(Client, reads_on_after_a_read_that_was_cancelled) {
  with_client({}, [&](Client& client) {
    std::atomic<bool> go{false};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
      coir::test::until([&] { return go.load(); });
      peer.say("hello");
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    expect(response.has_value());
    if (response) {
      coir::CancelScope scope;
      scope.cancel();
      char byte;
      expect(is(response->read({&byte, 1}), ErrorCode::cancelled));
    }
    go = true;
    expect(says(response, "hello"));
  });
}

TEST(Client, streams_content_larger_than_its_buffers) {
  with_client({}, [&](Client& client) {
    constexpr std::size_t kBytes = 3'000'000;
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
      static char block[10'000];
      for (std::size_t at = 0; at < sizeof block; ++at) block[at] = static_cast<char>(at % 251);
      for (int i = 0; i < 300; ++i) peer.say({block, sizeof block});
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    char part[700];
    std::size_t total = 0;
    bool right = true;
    while (response) {
      const auto got = response->read(part);
      if (!got) {
        expect(got.error() == ErrorCode::end_of_stream);
        break;
      }
      for (std::size_t i = 0; i < *got; ++i) right = right && part[i] == static_cast<char>((total + i) % 10'000 % 251);
      total += *got;
    }
    expect(right && total == kBytes);
  });
}

TEST(Client, tells_success_from_the_rest) {
  const auto status = [&](std::string_view answer, ErrorCode code) {
    with_answer(answer, [&](auto& response) {
      expect(response && !response->expect_success() && response->expect_success().error() == code);
    });
  };
  status("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ErrorCode::not_found);
  status("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", ErrorCode::temporary);
  status("HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n", ErrorCode::temporary);
  status("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", ErrorCode::invalid);
  status("HTTP/1.1 300 Choose\r\nContent-Length: 0\r\n\r\n", ErrorCode::invalid);
  with_answer(kHello, [&](auto& response) { expect(response && response->expect_success()); });
  STRCMP_EQUAL("the server has no such thing", coir::describe({ErrorCode::not_found, 0x48001000 + 404}));
}

TEST(Client, ends_a_phase_by_its_own_deadline) {
  ClientOptions options;
  options.timeouts.first_byte = 50ms;
  with_client(options, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) { peer.until_gone(); });
    const Error error = failed(client.get(server.url("/"), {.deadline = patience()}));
    expect(error == ErrorCode::timed_out && timed_out_phase(error) == Phase::first_byte);
    expect(std::string_view(describe(error)) == "timed out: the server did not answer");
  });
  options = {};
  options.timeouts.between_bytes = 50ms;
  with_client(options, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel");
      peer.until_gone();
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    const auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
    expect(!text && timed_out_phase(text.error()) == Phase::between_bytes);
  });
  options = {};
  options.timeouts.send = 50ms;
  with_client(options, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.until_cut_off();
    });
    static char large[8'000'000];
    const Error error = failed(client.post(server.url("/"), {large, sizeof large}, "", {.deadline = patience()}));
    expect(timed_out_phase(error) == Phase::send);
  });
}

TEST(Client, ends_as_a_whole_by_the_requests_deadline) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
      while (peer.say("x") && usleep(1000) == 0) {
      }
    });
    auto response = client.get(server.url("/"), {.deadline = Deadline::after(100ms)});
    expect(response.has_value());
    const auto text = response ? response->text(2'000'000) : std::unexpected(Error(ErrorCode::busy));
    expect(!text && text.error() == ErrorCode::timed_out && !timed_out_phase(text.error()));
  });
}

TEST(Client, ends_with_the_scope_that_it_is_in) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) { peer.until_gone(); });
    coir::CancelScope scope(Deadline::after(50ms));
    const Error error = failed(client.get(server.url("/")));
    expect(error == ErrorCode::timed_out && scope.caused(error) && !timed_out_phase(error));
  });
}

TEST(Client, stops_an_upload_that_was_answered_early) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
      // Nothing more is read until the client gives up.
      peer.until_cut_off();
    });
    static char large[8'000'000];
    auto response = client.post(server.url("/"), {large, sizeof large}, "", {.deadline = patience()});
    expect(response && response->status() == 413);
    expect(says(response, "no"));
    expect(client.open() == 0);
  });
}

TEST(Client, waits_for_leave_to_send_content_but_not_for_ever) {
  with_client({}, [&](Client& client) {
    std::atomic<int> told{0};
    const ScriptedServer server([&](Peer& peer) {
      if (peer.number == 0) {
        told = peer.hear().find("\r\nExpect: 100-continue\r\n") != std::string_view::npos;
        peer.say("HTTP/1.1 100 Continue\r\n\r\n");
        if (peer.hear_content(5) == "12345") peer.say(kHello);
      } else if (peer.number == 1) {
        peer.hear();
        if (peer.hear_content(5) == "12345") peer.say(kHello);
      } else {
        // Content without the server's leave is not sent; the client repeats the request without asking for leave.
        const bool asks = peer.hear().find("\r\nExpect: ") != std::string_view::npos;
        if (asks) peer.say("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
        const std::string_view content = peer.hear_content(5);
        told = told + (asks ? static_cast<int>(content.size()) + 1 : content == "12345");
        // An answer before the content would end the upload.
        if (!asks) peer.say(kHello);
      }
    });
    for (const auto wait : {60'000ms, 20ms}) {
      auto response = client.post(server.url("/"), "12345", "", {.deadline = patience(), .continue_wait = wait});
      expect(says(response, "hello"));
      client.close_resting();
    }
    auto response = client.post(server.url("/"), "12345", "", {.deadline = patience(), .continue_wait = 60'000ms});
    expect(says(response, "hello"));
    coir::test::until([&] { return told == 3; });
  });
}

TEST(Client, sends_content_that_is_made_while_it_is_sent) {
  struct Counting : Upload {
    int left = 3;
  };
  for (const bool sized : {false, true}) {
    with_client({}, [&](Client& client) {
      std::atomic<bool> right{false};
      const ScriptedServer server([&](Peer& peer) {
        const auto head = peer.hear();
        const bool chunked = head.find("\r\nTransfer-Encoding: chunked\r\n") != head.npos;
        const std::string_view wanted = chunked ? "4\r\nline\r\n4\r\nline\r\n4\r\nline\r\n0\r\n\r\n" : "linelineline";
        right = chunked != sized && peer.hear_content(wanted.size()) == wanted;
        peer.say(kHello);
      });
      Counting upload;
      upload.read = [](Upload& self, std::span<char> into) noexcept -> std::expected<std::size_t, Error> {
        if (static_cast<Counting&>(self).left-- == 0) return 0;
        memcpy(into.data(), "line", 4);
        return 4;
      };
      if (sized) upload.size = 12;
      auto response =
          client.request({.url = server.url("/"), .deadline = patience(), .method = "PUT", .upload = &upload});
      expect(says(response, "hello") && right);
    });
  }
}

TEST(Client, tells_an_upload_that_is_shorter_than_it_said) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([](Peer& peer) {
      peer.hear();
      peer.until_gone();
    });
    struct : Upload {
      bool given = false;
    } upload;
    upload.size = 12;
    upload.read = [](Upload& self, std::span<char> into) noexcept -> std::expected<std::size_t, Error> {
      if (std::exchange(static_cast<decltype(upload)&>(self).given, true)) return 0;
      memcpy(into.data(), "line", 4);
      return 4;
    };
    const Error error =
        failed(client.request({.url = server.url("/"), .deadline = patience(), .method = "PUT", .upload = &upload}));
    expect(error == ErrorCode::invalid && client.open() == 0);
    expect(std::string_view(describe(error)) == "the upload is not as long as it said");
  });
}

// A request's memory must live until the response is there, and no longer.
TEST(Client, a_response_knows_its_url_without_its_request) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    const std::string_view url = server.url("/where");
    char asked[256];
    auto response = client.get({asked, url.copy(asked, sizeof asked)}, {.deadline = patience()});
    memset(asked, '?', sizeof asked);
    expect(response && response->url() == url);
  });
}

// Content that came before a wait that failed belongs to the text all the same.
TEST(Client, a_text_goes_on_behind_a_wait_in_vain) {
  with_client({.timeouts = {.between_bytes = 20ms}}, [&](Client& client) {
    std::atomic<bool> waited_in_vain{false};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
      coir::test::until([&] { return waited_in_vain.load(); });
      peer.say("world");
      peer.until_gone();
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
    expect(is(text, ErrorCode::timed_out));
    waited_in_vain = true;
    while (is(text, ErrorCode::timed_out)) text = response->text();
    expect(text && *text == "helloworld");
  });
}

TEST(Client, content_that_came_while_its_reader_was_away_is_read) {
  with_client({.timeouts = {.between_bytes = 10ms}}, [&](Client& client) {
    std::atomic<bool> waited{false}, said{false};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
      coir::test::until([&] { return waited.load(); });
      peer.say("hello");
      said = true;
      peer.until_gone();
    });
    auto response = client.get(server.url("/"), {.deadline = patience()});
    char into[8];
    {
      const coir::CancelScope scope(Deadline::after(1ms));
      expect(response && is(response->read(into), ErrorCode::timed_out));
    }
    waited = true;
    // between_bytes passes, and nobody polls meanwhile.
    for (const Deadline passes = Deadline::after(10ms); !said || !passes.passed();) usleep(1000);
    const auto got = response ? response->read(into) : std::unexpected(Error(ErrorCode::busy));
    expect(got && *got == 5);
  });
}

TEST(Client, reaches_a_unix_socket) {
  coir::test::Folder folder;
  const char* const path = folder.at("socket");
  with_client({}, [&](Client& client) {
    char text[200];
    snprintf(text, sizeof text, "unix:%s", path);
    {
      const ScriptedServer server(answer_all(kHello), path);
      const auto at = coir::Address::parse(text);
      auto response = client.get("http://control/", {.deadline = patience(), .to = &*at});
      expect(says(response, "hello"));
    }
    unlink(path);
  });
}

TEST(Client, asks_for_a_part_and_reads_which_came) {
  with_client({}, [&](Client& client) {
    std::atomic<bool> asked{false};
    const ScriptedServer server([&](Peer& peer) {
      const auto head = peer.hear();
      asked = head.find("\r\nRange: bytes=2-\r\nIf-Range: \"a\"\r\n") != head.npos;
      peer.say("HTTP/1.1 206 Part\r\nContent-Range: bytes 2-4/5\r\nContent-Length: 3\r\n\r\nllo");
    });
    auto response =
        client.get(server.url("/"), {.deadline = patience(), .range = ByteRange{.first = 2}, .if_range = "\"a\""});
    const auto range = response ? response->content_range() : std::nullopt;
    expect(asked && range && range->first == 2 && range->last == 4 && range->size == 5);
  });
  with_client({}, [&](Client& client) {
    std::atomic<bool> asked{false};
    const ScriptedServer server([&](Peer& peer) {
      asked = peer.hear().find("If-Range") != std::string_view::npos;
      peer.say(kHello);
    });
    auto response = client.get(server.url("/"), {.deadline = patience(), .range = ByteRange{.first = 2}});
    expect(says(response, "hello") && !asked);
  });
  for (const std::string_view bad :
       {"bytes 4-2/5", "bytes 2-5/5", "bytes 2/5", "bytes 2-4", "bytes -2-4/5", "lines 2-4/5"}) {
    char answer[128];
    snprintf(answer, sizeof answer, "HTTP/1.1 206 Part\r\nContent-Range: %s\r\nContent-Length: 0\r\n\r\n", bad.data());
    with_answer(answer, [&](auto& response) { expect(response && !response->content_range()); });
  }
}

TEST(Client, serves_functions_without_an_object) {
  both_sides([&] {
    const ScriptedServer server(answer_all(kHello));
    auto response = get(server.url("/"), {.deadline = patience()});
    expect(says(response, "hello"));
    if (Client::shared() != nullptr) Client::shared()->close_resting();
  });
}

#if COIR_JSON

TEST(Client, reads_json_and_says_what_is_none) {
  with_client({}, [&](Client& client) {
    const auto asked = [&](const char* type, const char* content) {
      char answer[200];
      snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", type,
               strlen(content), content);
      const ScriptedServer server(answer_all(answer));
      auto response = client.get(server.url("/"), {.deadline = patience()});
      if (!response) return std::expected<coir::JsonDocument, Error>(std::unexpected(response.error()));
      return response->json(40);
    };
    const auto good = asked("application/json; charset=utf-8", R"({"high": 41})");
    // The document outlives its response.
    expect(good && good->root()["high"].integer<int>() == 41);
    expect(asked("application/problem+json", "[1]").has_value());
    expect(is(asked("text/html", "{}"), ErrorCode::unsupported));
    expect(is(asked("application/json", "{"), ErrorCode::protocol));
    expect(is(asked("application/json", "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]"), ErrorCode::protocol));
    expect(is(asked("application/json", "\"01234567890123456789012345678901234567890\""), ErrorCode::limit));
  });
}

#endif

}  // namespace client_test
