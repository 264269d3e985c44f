// A WebSocket on fibers: several at once, waits that hold nothing, cancellation, TLS, the client's handshake.

#include <CppUTest/TestHarness.h>
#include <coir/cancellation.h>
#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <coir/http/websocket.h>
#include <coir/http/wire/response.h>
#include <coir/nursery.h>
#include <string.h>

#include <array>
#include <atomic>
#include <string_view>

#include "net/src/websocket/accept.h"
#include "net/src/websocket/handshake.h"
#include "tests/support/everywhere.h"
#include "tests/support/until.h"
#include "tests/unit/websocket/raw_peer.h"

namespace websocket_fiber_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Buffer;
using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::Stream;

struct WebSocketFiberGroup : Everywhere {
  static std::size_t borrowed() { return coir::account::buffers.used() - Buffer::spare_bytes(); }

  static std::string_view bytes_of(std::size_t size) {
    static char bytes[20'000];
    memset(bytes, 'x', sizeof bytes);
    return {bytes, size};
  }

  // serve answers a client's request with `response`, in which an empty line's place is the head's end; `accepts` adds
  // what the handshake wants.
  static void serve(Stream& stream, bool accepts, std::string_view response) {
    char asked[2048];
    std::size_t used = 0;
    while (std::string_view(asked, used).find("\r\n\r\n") == std::string_view::npos) {
      const auto got = stream.read({asked + used, sizeof asked - used}, patience());
      if (!got) return;
      used += *got;
    }
    char memory[1024];
    if (accepts) {
      constexpr std::string_view kKey = "Sec-WebSocket-Key: ";
      const std::size_t at = std::string_view(asked, used).find(kKey) + kKey.size();
      ResponseHead head(memory);
      head.start(101, {});
      write_handshake_fields(head, {.status = 101, .key = {asked + at, kWebSocketKey}});
      static_cast<void>(stream.write(head.lines(), patience()));
    }
    static_cast<void>(stream.write(response, patience()));
  }

  // opened connects to a server that answers so.
  template <class Use>
  void opened(bool accepts, std::string_view response, Use use) {
    SocketPair pair;
    Stream server(std::move(pair.server));
    auto serving = spawn([&] { serve(server, accepts, response); });
    const std::string_view spoken[] = {"chat", "log"};
    auto connected = WebSocket::connect(
        std::move(pair.client), {.host = "board.test", .target = "/ws?a=1", .subprotocols = spoken}, {}, patience());
    expect(serving.join().has_value());
    use(std::move(connected), server);
  }

  void refused(bool accepts, std::string_view response, coir::Error error) {
    opened(accepts, response, [&](auto socket, Stream&) {
      expect(!socket && socket.error() == error && socket.error().sys == error.sys);
    });
  }
};

TEST_GROUP_BASE(WebSocketFiber, WebSocketFiberGroup) {};

TEST(WebSocketFiber, a_fiber_that_waits_for_a_message_holds_no_buffer) {
  everywhere([&] {
    Talk talk;
    std::atomic<int> heard = 0;
    auto reader = spawn([&] {
      for (; heard < 2; ++heard) expect(talk.socket.receive(patience()).has_value());
      expect(talk.socket.receive(patience()).error() == ErrorCode::end_of_stream);
    });
    expect(talk.peer.say(Opcode::text, "one"));
    until([&] { return heard == 1 && borrowed() == 0; });
    // The second comes in two parts; between them, too, it waits for bytes: what came is kept, and no more.
    expect(talk.peer.say(Opcode::text, "two", false));
    until([] { return borrowed() == Buffer::kLeast; });
    expect(talk.peer.say(Opcode::continuation, "three"));
    until([] { return borrowed() == 0; });
    until_parked(reader, "readable");
    expect(talk.peer.close(CloseCode::normal));
    expect(reader.join().has_value());
  });
}

TEST(WebSocketFiber, one_reads_while_others_write) {
  constexpr int kMessages = 200;
  everywhere([&] {
    Talk talk;
    coir::Nursery nursery;
    for (const std::string_view word : {"one", "another"}) {
      static_cast<void>(nursery.start([&, word] {
        for (int i = 0; i < kMessages; ++i) expect(talk.socket.send_text(word, patience()).has_value());
      }));
    }
    static_cast<void>(nursery.start([&] {
      for (int i = 0; i < kMessages; ++i) {
        const auto message = talk.socket.receive(patience());
        expect(message && message->bytes == "in");
      }
    }));
    static_cast<void>(nursery.start([&] {
      for (int i = 0; i < kMessages; ++i) expect(talk.peer.say(Opcode::ping, "p") && talk.peer.say(Opcode::text, "in"));
    }));
    int words[2] = {};
    while (words[0] + words[1] < 2 * kMessages) {
      const auto frame = talk.peer.hear();
      words[0] += frame.is(Opcode::text, "one");
      words[1] += frame.is(Opcode::text, "another");
      if (frame.gone) break;
    }
    expect(words[0] == kMessages && words[1] == kMessages);
    expect(nursery.join().has_value());
  });
}

TEST(WebSocketFiber, the_reader_goes_on_while_a_sender_waits_and_its_pong_follows) {
  everywhere([&] {
    Talk talk;
    auto sender = spawn([&] {
      for (int i = 0; i < 100; ++i) {
        if (!talk.socket.send_binary(bytes_of(20'000), patience())) break;
      }
    });
    until_parked(sender, "writable");
    std::atomic<int> read{0};
    auto reader = spawn([&] {
      while (talk.socket.receive(patience())) ++read;
    });
    expect(talk.peer.say(Opcode::ping, "old") && talk.peer.say(Opcode::ping, "new"));
    expect(talk.peer.say(Opcode::text, "got"));
    until([&] { return read == 1; });
    // The newest ping is answered once the message that was on its way is out.
    bool answered = false;
    for (int messages = 0; messages < 100;) {
      const auto frame = talk.peer.hear();
      expect(!frame.gone && !frame.is(Opcode::pong, "old"));
      if (frame.gone) break;
      if (frame.opcode == Opcode::binary) ++messages;
      answered |= frame.is(Opcode::pong, "new");
    }
    expect(answered);
    expect(talk.peer.close(CloseCode::normal));
    expect(sender.join().has_value() && reader.join().has_value());
  });
}

TEST(WebSocketFiber, a_second_reader_is_busy) {
  everywhere([&] {
    Talk talk;
    auto reader = spawn([&] { expect(talk.socket.receive(patience()).has_value()); });
    until_parked(reader, "readable");
    expect(talk.socket.receive(patience()).error() == ErrorCode::busy);
    expect(talk.peer.say(Opcode::text, "x"));
    expect(reader.join().has_value());
  });
}

TEST(WebSocketFiber, a_cancelled_reader_loses_nothing) {
  everywhere([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "one ", false));
    auto reader = spawn([&] { expect(talk.socket.receive(patience()).error() == ErrorCode::cancelled); });
    until_parked(reader, "readable");
    expect(reader.cancel().has_value());
    expect(reader.join().has_value());
    expect(talk.peer.say(Opcode::continuation, "two"));
    const auto message = talk.socket.receive(patience());
    expect(message && message->bytes == "one two");
  });
}

TEST(WebSocketFiber, close_leaves_the_answer_to_the_one_who_receives) {
  everywhere([&] {
    Talk talk;
    auto reader = spawn([&] { expect(talk.socket.receive(patience()).error() == ErrorCode::end_of_stream); });
    until_parked(reader, "readable");
    expect(talk.socket.close(CloseCode::going_away).has_value());
    expect(talk.peer.hear().closes(CloseCode::going_away));
    expect(talk.peer.close(CloseCode::going_away));
    expect(reader.join().has_value());
    expect(talk.socket.close_code() == CloseCode::going_away);
  });
}

TEST(WebSocketFiber, a_pong_keeps_a_silent_peer) {
  everywhere([&] {
    Talk talk({.ping_after = 5ms, .pong_timeout = 10s});
    auto reader = spawn([&] { expect(talk.socket.receive(patience()).has_value()); });
    for (int i = 0; i < 3; ++i) {
      expect(talk.peer.hear().is(Opcode::ping, ""));
      expect(talk.peer.say(Opcode::pong, ""));
    }
    expect(talk.peer.say(Opcode::text, "here"));
    expect(reader.join().has_value());
  });
}

// No ping goes out while a message is under way, so no pong is missing: write_timeout judges such a peer.
TEST(WebSocketFiber, a_peer_is_not_missed_while_it_is_sent_a_message) {
  everywhere([&] {
    Talk talk({.ping_after = 5ms, .pong_timeout = 5ms});
    auto sender = spawn([&] {
      while (talk.socket.send_binary(bytes_of(16'000), patience())) {
      }
    });
    until_parked(sender, "writable");
    std::atomic<bool> ended = false;
    auto reader = spawn([&] {
      expect(!talk.socket.receive(patience()));
      ended = true;
    });
    expect(coir::sleep(100ms).has_value() && !ended);
    talk.peer.stream().close();
    expect(reader.join().has_value() && sender.join().has_value());
  });
}

// While bytes come without a pause no wait looks at the time.
TEST(WebSocketFiber, a_peer_that_sends_without_a_pause_holds_up_no_close_and_no_deadline) {
  everywhere([&] {
    Talk talk({.close_timeout = 50ms});
    const auto flood = [&](Opcode with, std::size_t size) {
      while (talk.peer.say(with, bytes_of(size))) {
      }
    };
    auto pings = spawn([&] { flood(Opcode::ping, 100); });
    const auto received = talk.socket.receive(Deadline::after(30ms));
    expect(!received && received.error() == ErrorCode::timed_out);
    const auto closed = talk.socket.close();
    expect(!closed && (closed.error() == ErrorCode::truncated || closed.error() == ErrorCode::timed_out));
    talk.peer.stream().close();
    expect(pings.join().has_value());
  });
  everywhere([&] {
    Talk talk({.close_timeout = 24h});
    auto data = spawn([&] {
      while (talk.peer.say(Opcode::binary, bytes_of(16'000))) {
      }
    });
    // After so many bytes, if not after so much time.
    const auto closed = talk.socket.close();
    expect(!closed && closed.error() == ErrorCode::truncated);
    talk.peer.stream().close();
    expect(data.join().has_value());
  });
}

TEST(WebSocketFiber, a_message_larger_than_the_memory_for_it_passes_in_pieces) {
  constexpr std::size_t kPieces = 1000, kPiece = 16'000;
  everywhere([&] {
    SocketPair pair;
    const WebSocketOptions options = {.max_message = UINT64_MAX, .max_frame = UINT64_MAX};
    auto from = WebSocketAccess::make(std::move(pair.client), WebSocketRole::client, options, {}, {});
    auto to = WebSocketAccess::make(std::move(pair.server), WebSocketRole::server, options, {}, {});
    coir::account::buffers.set_ceiling(coir::account::buffers.used() + 2 * 16'384 + 2 * 4096);
    auto sender = spawn([&] {
      for (std::size_t i = 0; i < kPieces; ++i) {
        expect(from->send_piece({.begins = i == 0, .ends = i == kPieces - 1, .bytes = bytes_of(kPiece)}, patience())
                   .has_value());
      }
    });
    std::size_t got = 0;
    for (;;) {
      const auto piece = to->receive_piece(patience());
      expect(piece.has_value());
      if (!piece) break;
      got += piece->bytes.size();
      if (piece->ends) break;
    }
    expect(got == kPieces * kPiece);
    expect(sender.join().has_value());
    coir::account::buffers.set_ceiling(SIZE_MAX);
  });
}

TEST(WebSocketFiber, connect_opens_a_socket_and_takes_what_comes_behind_the_answer) {
  everywhere([&] {
    opened(true, "Sec-WebSocket-Protocol: log\r\n\r\n\x81\x02hi", [&](auto socket, Stream& server) {
      expect(socket.has_value());
      if (!socket) return;
      expect(socket->subprotocol() == "log");
      const auto message = socket->receive(patience());
      expect(message && message->text && message->bytes == "hi");
      expect(socket->send_text("yes", patience()).has_value());
      RawPeer peer(std::move(server), WebSocketRole::server);
      expect(peer.hear().is(Opcode::text, "yes"));
    });
  });
}

TEST(WebSocketFiber, connect_refuses_an_answer_that_is_none) {
  everywhere([&] {
    refused(false, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", {ErrorCode::protocol, 403});
    refused(false, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            {ErrorCode::protocol});
    refused(false, "SSH-2.0-OpenSSH_9.2\r\n\r\n", {ErrorCode::protocol});
    refused(true, "Sec-WebSocket-Protocol: mail\r\n\r\n", {ErrorCode::protocol});
    refused(true, "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", {ErrorCode::protocol});
  });
}

TEST(WebSocketFiber, connect_bounds_the_answer_and_what_it_asks) {
  everywhere([&] {
    constexpr std::string_view kBegin = "HTTP/1.1 101 Switching Protocols\r\nX: ";
    char head[5000];
    memset(head, 'x', sizeof head);
    memcpy(head, kBegin.data(), kBegin.size());
    opened(false, {head, sizeof head},
           [&](auto socket, Stream&) { expect(!socket && socket.error() == ErrorCode::limit); });
    for (const WebSocketRequest& request :
         {WebSocketRequest{.host = "a", .target = "/a b"}, WebSocketRequest{.host = "a\r\nb"},
          WebSocketRequest{.host = "a", .target = ""}}) {
      SocketPair pair;
      expect(WebSocket::connect(std::move(pair.client), request, {}, patience()).error() == ErrorCode::invalid);
    }
    SocketPair pair;
    pair.server.close();
    const auto socket = WebSocket::connect(std::move(pair.client), {.host = "a"}, {}, patience());
    expect(!socket && (socket.error() == ErrorCode::truncated || socket.error() == ErrorCode::closed));
  });
}

#if COIR_TLS
TEST(WebSocketFiber, by_tls_both_sides_talk_and_rest_without_buffers) {
  const auto server_context = authority().server();
  const auto client_context = authority().client();
  everywhere([&] {
    SocketPair pair;
    auto serving = spawn([&] {
      auto stream = coir::TlsStream::accept(std::move(pair.server), server_context, patience());
      expect(stream.has_value());
      if (!stream) return;
      auto socket = *WebSocketAccess::make(std::move(*stream), WebSocketRole::server, {}, {}, {});
      while (auto message = socket.receive(patience())) {
        expect(socket.send_text(message->bytes, patience()).has_value());
      }
      expect(socket.close_code() == CloseCode::normal);
    });
    auto stream = coir::TlsStream::connect(std::move(pair.client), client_context, "board.test", patience());
    expect(stream.has_value());
    if (stream) {
      auto socket = *WebSocketAccess::make(std::move(*stream), WebSocketRole::client, {}, {}, {});
      for (const std::size_t size : {std::size_t{1}, std::size_t{20'000}}) {
        expect(socket.send_text(bytes_of(size), patience()).has_value());
        const auto echo = socket.receive(patience());
        expect(echo && echo->bytes == bytes_of(size));
      }
      until_parked(serving, "readable");
      expect(socket.receive(Deadline::now()).error() == ErrorCode::timed_out);
      until([] { return borrowed() == 0; });
      expect(socket.close().has_value());
    }
    expect(serving.join().has_value());
  });
}
#endif

}  // namespace websocket_fiber_test
