// Content in chunks behind heads of any length: the head of a response lies in the buffer that its content is read into.

#include <coir/http/client.h>

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>

#include <memory>
#include <string_view>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace client_long_heads_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

// The client reads heads to the first three quarters of buffers of 4, 16 and 64 KiB.
constexpr std::size_t kLongestHead = 49152;
constexpr std::size_t kChunk = 1000;
constexpr std::size_t kChunks = 32;

// Answer is a response in chunks, whose head has the length that is asked for.
class Answer {
 public:
  std::string_view with_head_of(std::size_t bytes) {
    size_ = 0;
    add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Fill: ");
    while (size_ < bytes - 4) text_[size_++] = 'f';
    add("\r\n\r\n");
    for (std::size_t i = 0; i < kChunks; ++i) {
      add("3e8\r\n");
      for (std::size_t n = 0; n < kChunk; ++n) text_[size_++] = letter(i * kChunk + n);
      add("\r\n");
    }
    add("0\r\n\r\n");
    return {text_, size_};
  }
  static char letter(std::size_t at) { return static_cast<char>('a' + at % 23); }

 private:
  void add(std::string_view text) {
    text.copy(text_ + size_, text.size());
    size_ += text.size();
  }
  std::size_t size_ = 0;
  char text_[96 * 1024];
};

}  // namespace

TEST_GROUP_BASE(ClientLongHeads,
                coir::test::BothSides) {  // slide asks for answers whose heads end up to three bytes beside `boundary`.
  void slide(std::size_t boundary, std::uint32_t longest = kLongestHead) {
    const auto answer = std::make_unique<Answer>();
    for (std::size_t head = boundary - 3; head <= boundary + 3; ++head) {
      const std::string_view text = answer->with_head_of(head);
      both_sides([&] {
        const std::size_t buffers = coir::account::http.used();
        {
          const ScriptedServer server(coir::test::answer_all(text));
          auto client = Client::create({.max_head = longest});
          auto response = client->get(server.url("/"), {.deadline = Deadline::after(60s)});
          if (head > longest) return expect(!response && response.error() == ErrorCode::limit);
          expect(response.has_value());
          if (!response) return;
          const std::size_t fill = response->header("X-Fill").size();
          expect(fill > head - 100 && fill < head);
          std::size_t have = 0, reads = 0;
          char piece[4096];
          for (;; ++reads) {
            const auto got = response->read(piece);
            if (!got) {
              expect(got.error() == ErrorCode::end_of_stream);
              break;
            }
            for (std::size_t i = 0; i < *got; ++i) expect(piece[i] == Answer::letter(have + i));
            have += *got;
          }
          expect(have == kChunk * kChunks);
          // A read for each byte would be 32,000.
          expect(reads < 1000);
          // The head is still whole, and the connection can be used again.
          expect(response->header("X-Fill").size() == fill && response->header("X-Fill").ends_with('f'));
          expect(client->resting() == 1);
        }
        expect(coir::account::http.used() == buffers);
      });
    }
  }
};

TEST(ClientLongHeads, chunks_follow_a_head_of_any_length_in_the_first_buffer) {
  slide(3072 - 1024);
  slide(3072);
  slide(4096);
}

TEST(ClientLongHeads, chunks_follow_a_head_of_any_length_in_the_second_buffer) {
  slide(12288 - 1024);
  slide(12288);
  slide(16384);
}

TEST(ClientLongHeads, chunks_follow_a_head_of_any_length_in_the_third_buffer) {
  slide(49152 - 1024);
  slide(49152);
}

TEST(ClientLongHeads, a_head_is_no_longer_than_the_program_wants) {
  slide(5000, 5000);
}

}  // namespace client_long_heads_test
