// coir/mcp/client.h with servers that are programs: shell scripts that do as a test wants.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/net/log_line.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/pipe.h"
#include "tests/support/shell.h"
#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace mcp_client_program_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

namespace {

CallOptions patience() {
  return {.deadline = Deadline::after(60s)};
}

// Every script begins with this: say answers $id, answer is a server's loop with a function `call` of the test's.
#define PRELUDE                                                                  \
  "say() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\\n' \"$id\" \"$1\"; };"    \
  "loop() { while read -r line; do id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*};"  \
  " case $line in *server/discover*) discover;; *\\\"initialize\\\"*)"           \
  " say '\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}';;" \
  " *notifications/initialized*) ;; *) call;; esac; done; };"                    \
  "discover() { say '\"result\":{\"supportedVersions\":[\"2026-07-28\"]}'; };"   \
  "old() { say '\"error\":{\"code\":-32601,\"message\":\"what?\"}'; };"

}  // namespace

TEST_GROUP_BASE(McpClientProgram, Expecting) {
  // with runs the body beside a client of a shell script.
  template <class Body>
  void with(const char* script, McpClientOptions options, Body body) {
    signal(SIGPIPE, SIG_IGN);
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = coir::run_until_idle({.workers = workers}, [&] {
        const Shell shell(script);
        options.command = shell.argv;
        if (options.pause == 500ms) options.pause = 1ms;
        auto client = coir::mcp::McpClient::create(options);
        expect(client.has_value());
        if (!client) return;
        coir::Nursery nursery;
        nursery.start({.name = "program"}, [&] { expect(client->run().has_value()); });
        body(*client);
        client->close();
        expect(nursery.join().has_value());
        expect(no_child_is_left());
      });
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(0u, coir::account::mcp.used());
    }
  }
};

TEST(McpClientProgram, is_asked_by_lines_in_both_eras) {
  with(PRELUDE "call() { case $line in *2026-07-28*) say '\"result\":{\"content\":[]}';; esac; }; loop", {},
       [&](coir::mcp::McpClient& client) {
         const auto answer = client.call("one", "{\n  \"a\": 1\r\n}", patience());
         expect(answer && client.version() == Version::v2026_07_28);
       });
  with(PRELUDE "discover() { old; }; call() { say '\"result\":{\"content\":[]}'; }; loop", {},
       [&](coir::mcp::McpClient& client) {
         const auto answer = client.call("one", {}, patience());
         expect(answer && client.version() == Version::v2025_06_18 && client.counters().sessions.load() == 1);
       });
}

TEST(McpClientProgram, is_taken_for_an_old_one_when_it_is_silent_at_first) {
  with(PRELUDE "discover() { :; }; call() { say '\"result\":{\"content\":[]}'; }; loop", {.probe_timeout = 200ms},
       [&](coir::mcp::McpClient& client) {
         expect(client.call("one", {}, patience()).has_value() && client.version() == Version::v2025_06_18);
       });
}

TEST(McpClientProgram, answers_many_at_a_time_in_any_order) {
  // Each second one is answered first.
  with(PRELUDE
       "call() { if [ -z \"$kept\" ]; then kept=$id; else say '\"result\":{}'; id=$kept; say '\"result\":{}'; kept=; "
       "fi; };"
       "loop",
       {}, [&](coir::mcp::McpClient& client) {
         coir::Nursery nursery;
         for (int i = 0; i < 20; ++i) {
           nursery.start([&] { expect(client.call("one", {}, patience()).has_value()); });
         }
         expect(nursery.join().has_value());
       });
}

// A log line does not say whose request it is of: another caller must not read it.
TEST(McpClientProgram, log_lines_are_told_to_the_only_caller) {
  std::atomic<int> told = 0;
  CallOptions options = patience();
  options.told = [&](const Notification&) { ++told; };
#define LOGS                                                                              \
  "log() { printf '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":" \
  "{\"level\":\"info\",\"data\":\"x\"}}\\n'; };"
  with(PRELUDE LOGS "call() { log; say '\"result\":{}'; }; loop", {}, [&](coir::mcp::McpClient& client) {
    told = 0;
    expect(client.call("one", {}, options).has_value() && told == 1);
  });
  with(PRELUDE LOGS
       "call() { if [ -z \"$kept\" ]; then kept=$id; else log; say '\"result\":{}'; id=$kept; say '\"result\":{}'; fi; "
       "};"
       "loop",
       {}, [&](coir::mcp::McpClient& client) {
         told = 0;
         coir::Nursery nursery;
         for (int i = 0; i < 2; ++i) nursery.start([&] { expect(client.call("one", {}, options).has_value()); });
         expect(nursery.join().has_value());
         expect(told == 0 && client.counters().ignored.load() == 1);
       });
#undef LOGS
}

TEST(McpClientProgram, is_started_anew_when_it_has_died) {
  // It dies in the middle of the call "die".
  with(PRELUDE "call() { case $line in *die*) exit 3;; *) say '\"result\":{}';; esac; }; loop", {},
       [&](coir::mcp::McpClient& client) {
         for (unsigned i = 1; i <= 3; ++i) {
           expect(client.call("live", {}, patience()).has_value());
           const auto died = client.call("die", {}, patience());
           expect(!died && died.error() == ErrorCode::closed && client.counters().starts.load() >= i);
         }
         expect(client.call("live", {}, patience()).has_value() && client.counters().starts.load() == 4);
       });
}

TEST(McpClientProgram, begins_a_new_session_with_each_old_one) {
  with(PRELUDE
       "discover() { old; };"
       "call() { case $line in *die*) exit 3;; *) say '\"result\":{}';; esac; }; loop",
       {}, [&](coir::mcp::McpClient& client) {
         expect(client.call("live", {}, patience()).has_value());
         expect(!client.call("die", {}, patience()));
         expect(client.call("live", {}, patience()).has_value() && client.counters().sessions.load() == 2);
       });
}

TEST(McpClientProgram, may_say_what_is_no_message) {
  with("echo 'Starting up ...'; echo; echo '[1,2'; echo '{}';" PRELUDE
       "call() { echo garbage; awk 'BEGIN { for (i = 0; i < 3000; ++i) printf \"long\"; print \"\" }';"
       " echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}'; say '\"result\":{}'; }; loop",
       {.max_message = 8192}, [&](coir::mcp::McpClient& client) {
         expect(client.call("one", {}, patience()).has_value());
         expect(client.counters().garbage.load() == 5 && client.counters().ignored.load() == 1);
       });
}

TEST(McpClientProgram, is_told_to_drop_a_request_that_takes_too_long) {
  with(PRELUDE
       "call() { case $line in *notifications/cancelled*) cancelled=yes;; *silent*) ;;"
       " *) say \"\\\"result\\\":{\\\"cancelled\\\":\\\"$cancelled\\\"}\";; esac; }; loop",
       {}, [&](coir::mcp::McpClient& client) {
         expect(client.call("one", {}, patience()).has_value());
         const auto silent = client.call("silent", {}, {.deadline = Deadline::after(50ms)});
         expect(!silent && silent.error() == ErrorCode::timed_out);
         const auto answer = client.call("one", {}, patience());
         const auto cancelled = answer ? answer->result()["cancelled"].text() : std::unexpected(coir::Error{});
         expect(cancelled && *cancelled == "yes");
       });
}

TEST(McpClientProgram, tells_of_progress_and_changes) {
  with(PRELUDE
       "tell() { printf '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\",\"params\":{%s}}\\n' \"$1\" \"$2\"; };"
       "call() { case $line in *subscriptions/listen*) "
       "meta='\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":'$id'}';"
       " tell subscriptions/acknowledged \"$meta\"; tell tools/list_changed \"$meta\"; say '\"result\":{}';;"
       " *) tell progress '\"progressToken\":'$id; say '\"result\":{}';; esac; }; loop",
       {}, [&](coir::mcp::McpClient& client) {
         unsigned told = 0;
         CallOptions options = patience();
         options.told = [&](const Notification&) { ++told; };
         expect(client.call("one", {}, options).has_value() && told == 1);
         expect(client.listen({.tools = true}, options).has_value() && told == 3);
       });
}

TEST(McpClientProgram, of_an_old_kind_asks_and_tells_whoever_listens) {
  with(PRELUDE
       "discover() { old; };"
       "call() { case $line in *action*) id=$asked; say '\"result\":{}';"
       " echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}';;"
       " *) asked=$id; echo '{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}';; "
       "esac; };"
       "loop",
       {.elicitation = true,
        .asked =
            [](const Question&, coir::JsonWriter& answer) {
              answer.object().member("action", "accept").end();
              return true;
            }},
       [&](coir::mcp::McpClient& client) {
         std::atomic<unsigned> told = 0;
         CallOptions options;
         options.told = [&](const Notification&) { ++told; };
         auto listener = coir::spawn([&] { expect(!client.listen({.tools = true}, options)); });
         until([&] { return told == 1; });
         expect(client.call("ask", {}, patience()).has_value());
         until([&] { return told == 2; });
         expect(listener.cancel().has_value() && listener.join().has_value());
       });
}

TEST(McpClientProgram, may_flood_its_standard_error) {
  with("exec 3>&1; awk 'BEGIN { for (i = 0; i < 20000; ++i) print \"complaint \" i }' >&2;" PRELUDE
       "call() { say '\"result\":{}'; }; loop",
       {}, [&](coir::mcp::McpClient& client) {
         expect(client.call("one", {}, patience()).has_value());
         until([&] { return client.counters().complaints.load() == 20000; });
       });
}

TEST(McpClientProgram, that_does_not_read_costs_its_own_request_alone) {
  char large[300 * 1024];
  memset(large, ' ', sizeof large);
  memcpy(large, "{\"a\":", 5);
  memcpy(large + sizeof large - 2, "1}", 2);
  with(PRELUDE "call() { case $line in *hang*) sleep 100;; *) say '\"result\":{}';; esac; }; loop", {},
       [&](coir::mcp::McpClient& client) {
         expect(client.call("one", {}, patience()).has_value());
         auto hangs = coir::spawn([&] { expect(!client.call("hang", {}, patience())); });
         expect(until_parked(hangs));
         // Half of this is written when its deadline passes: the program can be told nothing more, and is started anew.
         const auto cut = client.call("large", {large, sizeof large}, {.deadline = Deadline::after(200ms)});
         expect(!cut && cut.error() == ErrorCode::timed_out);
         expect(hangs.join().has_value());
         expect(client.call("one", {}, patience()).has_value() && client.counters().starts.load() == 2);
       });
}

TEST(McpClientProgram, that_fails_at_once_has_its_last_words_logged_and_is_tried_again) {
  with("exec >&-; echo 'no such device' >&2; exit 1", {}, [&](coir::mcp::McpClient& client) {
    until([&] { return client.counters().starts.load() >= 3 && client.counters().complaints.load() >= 2; });
    const auto answer = client.call("one", {}, {.deadline = Deadline::after(100ms)});
    expect(!answer && (answer.error() == ErrorCode::closed || answer.error() == ErrorCode::timed_out));
  });
}

TEST(McpClientProgram, cannot_move_the_cursor_of_a_reader_of_the_log) {
  coir::keep_log_lines(true);
  with("printf 'x\\033[2J\\302\\2332J\\233y\\n' >&2; exit 1", {}, [&](coir::mcp::McpClient& client) {
    until([&] { return client.counters().complaints.load() >= 1; });
    char room[4096];
    const auto is_logged = [&] {
      return coir::recent_log_lines(room).find(R"(: x\\x1b[2J\\xc2\\x9b2J\\x9by)") != std::string_view::npos;
    };
    const auto latest = Deadline::after(5s);
    while (!is_logged() && !latest.passed()) static_cast<void>(coir::sleep(1ms));
    expect(is_logged());
  });
  coir::keep_log_lines(false);
}

TEST(McpClientProgram, that_is_none_says_why) {
  signal(SIGPIPE, SIG_IGN);
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    const char* const argv[] = {"/nonexistent/program", nullptr};
    auto client = coir::mcp::McpClient::create({.command = argv, .pause = 1ms});
    expect(client.has_value());
    if (!client) return;
    coir::Nursery nursery;
    nursery.start([&] { expect(client->run().has_value()); });
    const auto answer = client->call("one", {}, patience());
    expect(!answer && answer.error() == ErrorCode::not_found);
    client->close();
    expect(nursery.join().has_value());
    const auto closed = client->call("one", {}, patience());
    expect(!closed && closed.error() == ErrorCode::closed);
  });
  check();
  CHECK_TRUE(ended.has_value());
  CHECK_EQUAL(0u, coir::account::mcp.used());
}

TEST(McpClientProgram, that_ignores_the_end_of_its_input_is_killed) {
  with("trap '' TERM; exec 2>/dev/null;" PRELUDE "call() { say '\"result\":{}'; }; loop; while :; do sleep 1; done", {},
       [&](coir::mcp::McpClient& client) { expect(client.call("one", {}, patience()).has_value()); });
}

}  // namespace mcp_client_program_test
