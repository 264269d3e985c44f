// Receiving and sending by a WebSocket: the same on fibers, on plain threads and without fibers.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/http/websocket.h>
#include <coir/ledger.h>
#include <coir/sleep.h>
#include <sys/socket.h>

#include <string_view>

#include "tests/support/both_sides.h"
#include "tests/support/thread.h"
#include "tests/unit/websocket/no_buffers.h"
#include "tests/unit/websocket/raw_peer.h"

namespace websocket_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Buffer;
using coir::Deadline;
using coir::ErrorCode;

namespace {

char g_large[300'000];  // "abc...xyzabc..."

std::string_view large(std::size_t size) {
  if (g_large[0] == 0) {
    for (std::size_t i = 0; i < sizeof g_large; ++i) g_large[i] = static_cast<char>('a' + i % 26);
  }
  return {g_large, size};
}

}  // namespace

struct WebSocketGroup : BothSides {
  static std::size_t borrowed() { return coir::account::buffers.used() - Buffer::spare_bytes(); }

  void teardown() override { LONGS_EQUAL(0, borrowed()); }

  // ends expects that the next message does not come for that reason.
  void ends(Talk& talk, ErrorCode why, const std::source_location& where = std::source_location::current()) {
    const auto message = talk.socket.receive(patience());
    expect(!message && message.error() == why, where);
    const auto again = talk.socket.receive(patience());
    expect(!again && again.error() == why, where);
    expect(talk.socket.send_text("late").error() == ErrorCode::closed, where);
  }
};

TEST_GROUP_BASE(WebSocket, WebSocketGroup) {};

TEST(WebSocket, messages_arrive_as_they_were_sent) {
  both_sides([&] {
    for (const auto role : {WebSocketRole::server, WebSocketRole::client}) {
      Talk talk({}, role);
      expect(talk.peer.say(Opcode::text, "gr\xc3\xbc\xc3\x9f") && talk.peer.say(Opcode::binary, "\xff\x00"));
      expect(talk.peer.say(Opcode::text, ""));
      const auto text = talk.socket.receive(patience());
      expect(text && text->text && text->bytes == "gr\xc3\xbc\xc3\x9f");
      const auto binary = talk.socket.receive(patience());
      expect(binary && !binary->text && binary->bytes == "\xff");
      const auto empty = talk.socket.receive(patience());
      expect(empty && empty->text && empty->bytes.empty());
    }
  });
}

// A Unix socket tells of room once three quarters of it are free.
TEST(WebSocket, a_peer_that_takes_a_little_at_a_time_gets_all) {
  constexpr int kMessages = 40, kSlow = 16;
  both_sides([&] {
    for (const auto role : {WebSocketRole::server, WebSocketRole::client}) {
      Talk talk({.write_timeout = 400ms}, role);
      int heard = 0;
      Thread reader([&] {
        for (; heard < kMessages; ++heard) {
          if (heard < kSlow) static_cast<void>(coir::sleep(50ms));
          if (talk.peer.hear().size != 16'000) return;
        }
      });
      bool sent = true;
      for (int i = 0; i < kMessages && sent; ++i) sent = talk.socket.send_binary(large(16'000)).has_value();
      if (!sent) ::shutdown(talk.peer.stream().fd(), SHUT_RDWR);
      reader.join();
      expect(sent && heard == kMessages);
    }
  });
}

TEST(WebSocket, a_peer_that_takes_nothing_is_left) {
  both_sides([&] {
    Talk talk({.write_timeout = 50ms});
    std::expected<void, coir::Error> sent;
    do sent = talk.socket.send_binary(large(16'000), patience());
    while (sent);
    expect(sent.error() == ErrorCode::timed_out);
  });
}

TEST(WebSocket, messages_go_out_whole_and_masked_by_a_client_alone) {
  both_sides([&] {
    for (const auto role : {WebSocketRole::server, WebSocketRole::client}) {
      Talk talk({}, role);
      expect(talk.socket.send_text("text", patience()).has_value());
      expect(talk.socket.send_binary(large(70'000), patience()).has_value());
      expect(talk.socket.send_text("", patience()).has_value());
      const auto first = talk.peer.hear();
      expect(first.is(Opcode::text, "text"));
      const auto second = talk.peer.hear();
      expect(second.fin && second.opcode == Opcode::binary && second.size == 70'000 &&
             second.payload() == large(sizeof second.bytes));
      expect(talk.peer.hear().is(Opcode::text, ""));
    }
  });
}

TEST(WebSocket, fragments_become_one_message_and_control_frames_between_them_are_answered) {
  both_sides([&] {
    Talk talk;
    const std::string_view most = large(125);
    expect(talk.peer.say(Opcode::text, "one ", false) && talk.peer.say(Opcode::ping, most));
    expect(talk.peer.say(Opcode::continuation, "", false) && talk.peer.say(Opcode::pong, "unasked"));
    expect(talk.peer.say(Opcode::continuation, "two"));
    const auto message = talk.socket.receive(patience());
    expect(message && message->text && message->bytes == "one two");
    expect(talk.peer.hear().is(Opcode::pong, most));
  });
}

TEST(WebSocket, a_message_larger_than_a_buffer_arrives_whole) {
  both_sides([&] {
    Talk talk;
    // Less than a socket holds, as one thread does both.
    for (int turn = 0; turn < 2; ++turn) {
      expect(talk.peer.say(Opcode::text, large(90'000)));
      const auto message = talk.socket.receive(patience());
      expect(message && message->bytes == large(90'000));
    }
  });
}

TEST(WebSocket, text_that_is_not_utf8_is_refused_with_1007) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "gr\xc3", false) && talk.peer.say(Opcode::continuation, "\xbc\xc3"));
    talk.peer.stream().shutdown_write();
    ends(talk, ErrorCode::protocol);
    expect(talk.peer.hear().closes(CloseCode::invalid_payload));
    expect(talk.peer.ended());
    expect(talk.socket.close_code() == CloseCode::abnormal);
  });
}

TEST(WebSocket, an_unmasked_client_and_a_masked_server_are_refused_with_1002) {
  both_sides([&] {
    for (const auto role : {WebSocketRole::server, WebSocketRole::client}) {
      Talk talk({}, role);
      expect(talk.peer.say(Opcode::text, "x", true, role == WebSocketRole::client));
      talk.peer.stream().shutdown_write();
      ends(talk, ErrorCode::protocol);
      expect(talk.peer.hear().closes(CloseCode::protocol_error));
    }
  });
}

TEST(WebSocket, ceilings_hold_for_messages_frames_and_fragments) {
  both_sides([&] {
    {
      Talk talk({.max_message = 10});
      expect(talk.peer.say(Opcode::binary, "0123456789"));
      expect(talk.socket.receive(patience()).has_value());
      expect(talk.peer.say(Opcode::binary, "012345", false) && talk.peer.say(Opcode::continuation, "67890"));
      talk.peer.stream().shutdown_write();
      ends(talk, ErrorCode::limit);
      expect(talk.peer.hear().closes(CloseCode::too_big));
    }
    {
      Talk talk({.max_frame = 5});
      expect(talk.peer.say(Opcode::binary, "01234", false) && talk.peer.say(Opcode::continuation, "012345"));
      talk.peer.stream().shutdown_write();
      ends(talk, ErrorCode::limit);
      expect(talk.peer.hear().closes(CloseCode::too_big));
    }
    {
      Talk talk({.max_fragments = 2});
      expect(talk.peer.say(Opcode::binary, "0", false) && talk.peer.say(Opcode::continuation, "1", false));
      expect(talk.peer.say(Opcode::continuation, "2"));
      talk.peer.stream().shutdown_write();
      ends(talk, ErrorCode::limit);
      expect(talk.peer.hear().closes(CloseCode::policy_violation));
    }
  });
}

TEST(WebSocket, a_peer_that_closes_is_answered_with_its_code) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "last") && talk.peer.close(CloseCode{4001}, "enough"));
    expect(talk.socket.receive(patience()).has_value());
    expect(talk.socket.close_code() == CloseCode::no_status);
    ends(talk, ErrorCode::end_of_stream);
    expect(talk.socket.close_code() == CloseCode{4001} && talk.socket.close_reason() == "enough");
    expect(talk.peer.hear().closes(CloseCode{4001}) && talk.peer.ended());
  });
}

TEST(WebSocket, a_close_without_a_code_is_answered_without_one) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::close, ""));
    ends(talk, ErrorCode::end_of_stream);
    expect(talk.socket.close_code() == CloseCode::no_status && talk.socket.close_reason().empty());
    const auto answer = talk.peer.hear();
    expect(answer.is(Opcode::close, ""));
  });
}

TEST(WebSocket, close_drops_what_still_comes_until_the_answer) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "dropped") && talk.peer.close(CloseCode::normal));
    expect(talk.socket.close(CloseCode::going_away, "bye").has_value());
    const auto heard = talk.peer.hear();
    expect(heard.closes(CloseCode::going_away) && read_close(heard.payload()).reason == "bye");
    expect(talk.peer.ended());
    expect(talk.socket.send_text("late").error() == ErrorCode::closed);
    expect(talk.socket.receive(patience()).error() == ErrorCode::end_of_stream);
  });
}

TEST(WebSocket, a_close_that_nobody_answers_ends_in_time) {
  both_sides([&] {
    Talk talk({.close_timeout = 20ms});
    const auto closed = talk.socket.close();
    expect(!closed && (closed.error() == ErrorCode::timed_out || closed.error() == ErrorCode::truncated));
    expect(talk.peer.hear().closes(CloseCode::normal));
  });
}

TEST(WebSocket, a_message_that_cannot_be_sent_is_refused_and_changes_nothing) {
  both_sides([&] {
    Talk talk;
    expect(talk.socket.send_text("\xc3").error() == ErrorCode::invalid);
    expect(talk.socket.ping(large(126)).error() == ErrorCode::limit);
    expect(talk.socket.close(CloseCode::abnormal).error() == ErrorCode::invalid);
    expect(talk.socket.close(CloseCode::normal, large(124)).error() == ErrorCode::limit);
    expect(talk.socket.send_piece({.text = true, .begins = false}).error() == ErrorCode::invalid);
    expect(talk.socket.ping(large(125), patience()).has_value());
    expect(talk.peer.hear().is(Opcode::ping, large(125)));
  });
}

TEST(WebSocket, a_connection_that_ends_without_a_close_frame_is_truncated) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "half", false));
    talk.peer.stream().close();
    ends(talk, ErrorCode::truncated);
    expect(talk.socket.close_code() == CloseCode::abnormal);
  });
}

TEST(WebSocket, a_silent_peer_is_pinged_and_then_given_up) {
  both_sides([&] {
    Talk talk({.ping_after = 10ms, .pong_timeout = 10ms});
    ends(talk, ErrorCode::truncated);
    expect(talk.peer.hear().is(Opcode::ping, ""));
    expect(talk.socket.close_code() == CloseCode::abnormal);
  });
}

TEST(WebSocket, receive_ends_by_its_deadline_and_goes_on_where_it_was) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "one ", false));
    expect(talk.socket.receive(Deadline::now()).error() == ErrorCode::timed_out);
    expect(talk.peer.say(Opcode::continuation, "two"));
    const auto message = talk.socket.receive(patience());
    expect(message && message->bytes == "one two");
  });
}

TEST(WebSocket, a_message_that_drips_ends_with_1008) {
  both_sides([&] {
    Talk talk({.message_timeout = 10ms});
    expect(talk.peer.say(Opcode::text, "half", false));
    talk.peer.stream().shutdown_write();
    const auto message = talk.socket.receive(patience());
    // The end may be noticed first.
    expect(!message && message.error() == ErrorCode::truncated);
  });
  both_sides([&] {
    Talk talk({.message_timeout = 10ms, .close_timeout = 10ms});
    expect(talk.peer.say(Opcode::text, "half", false));
    ends(talk, ErrorCode::truncated);
    expect(talk.peer.hear().closes(CloseCode::policy_violation));
  });
}

TEST(WebSocket, messages_go_both_ways_in_pieces) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "gr\xc3", false) && talk.peer.say(Opcode::continuation, "\xbcn"));
    auto piece = talk.socket.receive_piece(patience());
    expect(piece && piece->text && piece->begins && !piece->ends && piece->bytes == "gr\xc3");
    expect(talk.socket.receive(patience()).error() == ErrorCode::invalid);
    piece = talk.socket.receive_piece(patience());
    expect(piece && !piece->begins && piece->ends && piece->bytes == "\xbcn");

    expect(talk.socket.send_piece({.text = true, .ends = false, .bytes = "gr\xc3"}, patience()).has_value());
    expect(talk.socket.send_text("between").error() == ErrorCode::busy);
    expect(talk.socket.send_piece({.begins = true}).error() == ErrorCode::invalid);
    expect(talk.socket.send_piece({.begins = false, .bytes = "n"}).error() == ErrorCode::invalid);
    expect(talk.socket.ping("p", patience()).has_value());
    expect(talk.socket.send_piece({.begins = false, .bytes = "\xbcn"}, patience()).has_value());
    expect(talk.socket.send_text("after", patience()).has_value());
    const auto first = talk.peer.hear();
    expect(first.opcode == Opcode::text && !first.fin && first.payload() == "gr\xc3");
    expect(talk.peer.hear().is(Opcode::ping, "p"));
    expect(talk.peer.hear().is(Opcode::continuation, "\xbcn"));
    expect(talk.peer.hear().is(Opcode::text, "after"));
  });
}

TEST(WebSocket, a_full_peer_ends_send_by_its_deadline) {
  both_sides([&] {
    Talk talk;
    // Until a send that takes nothing has timed out, or one that was cut off.
    for (;;) {
      const auto sent = talk.socket.send_binary(large(4096), Deadline::after(5ms));
      if (sent) continue;
      expect(sent.error() == ErrorCode::timed_out);
      break;
    }
    const auto after = talk.socket.send_binary("x", Deadline::after(5ms));
    expect(!after && (after.error() == ErrorCode::timed_out || after.error() == ErrorCode::closed));
  });
}

// Behind half a frame nothing more can be said.
TEST(WebSocket, a_frame_that_was_cut_off_ends_the_wait_of_whoever_receives) {
  both_sides([&] {
    Talk talk;
    static char bytes[8 << 20];
    const auto sent = talk.socket.send_binary({bytes, sizeof bytes}, Deadline::after(20ms));
    expect(!sent && sent.error() == ErrorCode::timed_out);
    const auto none = talk.socket.receive(patience());
    expect(!none && none.error() != ErrorCode::timed_out);
  });
}

TEST(WebSocket, a_refused_buffer_between_messages_loses_nothing) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "one"));
    const NoBuffers none;
    expect(talk.socket.receive(patience()).error() == ErrorCode::no_memory);
    none.end();
    const auto message = talk.socket.receive(patience());
    expect(message && message->bytes == "one");
  });
}

TEST(WebSocket, a_refused_buffer_in_the_middle_of_a_message_ends_with_1013) {
  both_sides([&] {
    Talk talk;
    expect(talk.peer.say(Opcode::text, "one", false) && talk.peer.say(Opcode::continuation, "two", false));
    expect(talk.socket.receive(Deadline::now()).error() == ErrorCode::timed_out);
    expect(talk.peer.say(Opcode::continuation, large(5000)));
    talk.peer.stream().shutdown_write();
    const NoBuffers none;
    const auto first = talk.socket.receive(patience());
    expect(first.error() == ErrorCode::no_memory);
    none.end();
    coir::account::buffers.set_ceiling(borrowed() + Buffer::spare_bytes() + 16'384);
    ends(talk, ErrorCode::no_memory);
    coir::account::buffers.set_ceiling(SIZE_MAX);
    expect(talk.peer.hear().closes(CloseCode::try_again_later));
  });
}

}  // namespace websocket_test
