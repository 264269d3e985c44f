// Compressed responses (kGzip of coir/http/client.h).

#include <coir/http/client.h>

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>

#include <atomic>
#include <string>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace client_gzip_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

Deadline patience() {
  return Deadline::after(60s);
}

constexpr std::size_t kZeros = 100'000;

// "hello, board", and 100,000 bytes of zero, as gzip -9 makes them.
constexpr std::string_view kHello(
    "\037\213\010\000\000\000\000\000\002\003\313\110\315\311\311\327\121\110\312\117\054\112\001\000\076\110\212\235"
    "\014\000\000\000",
    32);
constexpr std::string_view kMany(
    "\037\213\010\000\000\000\000\000\002\003\355\301\061\001\000\000\000\302\240\365\117\155\015\017\240\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\000\000\000\000\000\200\127\003\175\225\021\324\240\206\001\000",
    132);

// with_length is a response with this content.
std::string with_length(std::string_view content, const char* coding = "gzip") {
  return "HTTP/1.1 200 OK\r\nContent-Encoding: " + std::string(coding) +
         "\r\nContent-Length: " + std::to_string(content.size()) + "\r\n\r\n" + std::string(content);
}

bool asks_for_gzip(std::string_view head) {
  return head.find("\r\nAccept-Encoding: gzip\r\n") != head.npos;
}

// read_all reads to the end, by pieces of a size, and counts; `error` is what ended it.
struct ReadAll {
  std::size_t bytes = 0;
  bool zeros = true;
  Error error;
};
ReadAll read_all(Response& response, std::size_t piece) {
  ReadAll all;
  char room[4096];
  for (;;) {
    const auto got = response.read(std::span(room).first(piece));
    if (!got) {
      all.error = got.error();
      return all;
    }
    all.bytes += *got;
    for (std::size_t i = 0; i < *got; ++i) all.zeros = all.zeros && room[i] == 0;
  }
}

}  // namespace

TEST_GROUP_BASE(ClientGzip, coir::test::BothSides) {
  // answered asks for "/" of a server that says `answer` as it is, and leaves no memory behind.
  template <class Check>
  void answered(const std::string& answer, Check check, ClientRequest request = {}) {
    both_sides([&] {
      const std::size_t http = coir::account::http.used();
      {
        auto client = Client::create({.coding = &kGzip, .max_decoded = kZeros});
        const ScriptedServer server([&](Peer& peer) {
          while (!peer.hear().empty() && peer.say(answer)) {
            if (answer.find("Content-Length") == answer.npos && answer.find("chunked") == answer.npos) return;
          }
        });
        ClientRequest asked = request;
        asked.deadline = patience();
        auto response = client->get(server.url("/"), asked);
        expect(response.has_value());
        if (response) check(*client, *response);
      }
      expect(coir::account::http.used() == http);
    });
  }
  void ends_with(const std::string& answer, ErrorCode code, const char* phrase) {
    answered(answer, [&](Client&, Response& response) {
      const ReadAll all = read_all(response, 4096);
      expect(all.error == code);
      expect(std::string_view(describe(all.error)).find(phrase) != std::string_view::npos);
    });
  }
};

TEST(ClientGzip, is_asked_for_and_taken_off) {
  both_sides([&] {
    auto client = Client::create({.coding = &kGzip});
    std::atomic<int> asked{0};
    const ScriptedServer server([&](Peer& peer) {
      if (asks_for_gzip(peer.hear())) ++asked;
      peer.say(with_length(kHello));
      peer.until_gone();
    });
    auto response = client->get(server.url("/"), {.deadline = patience()});
    expect(response && !response->content_length() && response->header("Content-Encoding") == "gzip");
    const auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
    expect(text && *text == "hello, board");
    expect(client->resting() == 1 && asked == 1);
  });
}

TEST(ClientGzip, is_not_asked_for_with_a_range_or_against_the_callers_own_word) {
  both_sides([&] {
    auto client = Client::create({.coding = &kGzip});
    std::atomic<int> asked{0};
    const ScriptedServer server([&](Peer& peer) {
      for (std::string_view head; !(head = peer.hear()).empty();) {
        if (asks_for_gzip(head)) ++asked;
        if (!peer.say(with_length(kHello))) return;
      }
    });
    const RequestField own[] = {{"accept-encoding", "gzip, br"}};
    for (const ClientRequest& request : {ClientRequest{.deadline = patience(), .range = ByteRange{0, {}}},
                                         ClientRequest{.deadline = patience(), .fields = own}}) {
      auto response = client->get(server.url("/"), request);
      const auto text = response ? response->text() : std::unexpected(Error(ErrorCode::busy));
      expect(text && *text == kHello && response->content_length() == kHello.size());
    }
    expect(asked == 0);
  });
}

TEST(ClientGzip, comes_whole_however_it_is_cut) {
  for (const std::size_t piece : {1, 7, 1000, 4096}) {
    answered(with_length(kMany), [&](Client& client, Response& response) {
      const ReadAll all = read_all(response, piece);
      expect(all.bytes == kZeros && all.zeros && all.error == ErrorCode::end_of_stream);
      expect(client.resting() == 1);
    });
  }
  std::string chunked = "HTTP/1.1 200 OK\r\nContent-Encoding: X-GZIP\r\nTransfer-Encoding: chunked\r\n\r\n";
  chunked.replace(chunked.find("X-GZIP"), 6, "GZIP");
  for (const char byte : kMany) chunked += "1\r\n" + std::string(1, byte) + "\r\n";
  chunked += "0\r\n\r\n";
  answered(chunked, [&](Client&, Response& response) {
    const ReadAll all = read_all(response, 4096);
    expect(all.bytes == kZeros && all.zeros && all.error == ErrorCode::end_of_stream);
  });
  answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + std::string(kHello),
           [&](Client&, Response& response) { expect(read_all(response, 5).bytes == 12); });
}

TEST(ClientGzip, of_several_members_is_one_content) {
  answered(with_length(std::string(kHello) + std::string(kHello)), [&](Client&, Response& response) {
    const auto text = response.text();
    expect(text && *text == "hello, boardhello, board");
  });
}

TEST(ClientGzip, no_content_is_none) {
  answered(with_length(""), [&](Client&, Response& response) {
    const auto text = response.text();
    expect(text && text->empty());
  });
}

TEST(ClientGzip, is_known_by_its_old_name) {
  answered(with_length(kHello, "X-gzip"), [&](Client&, Response& response) {
    const auto text = response.text();
    expect(text && *text == "hello, board");
  });
}

TEST(ClientGzip, another_coding_comes_as_it_is) {
  answered(with_length("brotli", "br"), [&](Client&, Response& response) {
    const auto text = response.text();
    expect(text && *text == "brotli");
  });
}

TEST(ClientGzip, decoded_bytes_are_returned_before_more_is_read) {
  // Each byte in the middle stands for a thousand.
  std::size_t told = 0;
  for (const std::size_t piece : {4096, 100, 1}) {
    answered(with_length(kMany.substr(0, 60)), [&](Client&, Response& response) {
      const ReadAll all = read_all(response, piece);
      if (told == 0) told = all.bytes;
      expect(all.bytes == told && told > 30'000 && all.error == ErrorCode::truncated);
    });
  }
}

TEST(ClientGzip, is_read_into_no_place_by_nobody) {
  answered(with_length(kHello), [&](Client&, Response& response) {
    const auto got = response.read({});
    expect(!got && got.error() == ErrorCode::invalid);
    const auto text = response.text();
    expect(text && *text == "hello, board");
  });
}

TEST(ClientGzip, without_content_has_the_length_that_there_would_be) {
  both_sides([&] {
    auto client = Client::create({.coding = &kGzip});
    const ScriptedServer server(
        coir::test::answer_all("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 32\r\n\r\n"));
    auto response = client->head(server.url("/"), {.deadline = patience()});
    expect(response && response->content_length() == 32);
    expect(response && read_all(*response, 100).error == ErrorCode::end_of_stream);
  });
}

TEST(ClientGzip, a_bomb_ends_at_the_cap) {
  answered(with_length(kMany), [&](Client&, Response& response) {
    const auto text = response.text(1000);
    expect(!text && text.error() == ErrorCode::limit);
  });
  ends_with(with_length(std::string(kMany) + std::string(kHello)), ErrorCode::limit, "max_decoded");
}

TEST(ClientGzip, content_that_is_cut_off_or_broken_is_an_error) {
  ends_with(with_length(kMany.substr(0, 60)), ErrorCode::truncated, "");
  std::string changed(kHello);
  changed[14] ^= 1;
  ends_with(with_length(changed), ErrorCode::protocol, "compressed content");
  std::string wrong_sum(kHello);
  wrong_sum[kHello.size() - 8] ^= 1;
  ends_with(with_length(wrong_sum), ErrorCode::protocol, "compressed content");
  ends_with(with_length(std::string(kHello) + "garbage"), ErrorCode::protocol, "compressed content");
  ends_with(with_length("no gzip at all"), ErrorCode::protocol, "compressed content");
}

}  // namespace client_gzip_test
