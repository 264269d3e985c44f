// coir/mcp/gateway.h: what mounted servers have, as a client of ours sees it.

#include <CppUTest/TestHarness.h>
#include <signal.h>

#include "tests/support/shell.h"
#include "tests/unit/mcp/gateway/front.h"

namespace mcp_gateway_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

TEST_GROUP_BASE(McpGateway, WithMounts) {};

TEST(McpGateway, offers_what_upstreams_have_under_their_prefixes) {
  with([&] {
    std::atomic<unsigned> wrong = 0;
    const ScriptedServer first(mcp_script([&](McpPeer& server) {
      if (server.is("tools/call") && !server.says(R"("name":"add","arguments":{"x":1.5})")) ++wrong;
      if (server.is("resources/read") && !server.says(R"("uri":"same:r")") && !server.says(R"("uri":"t:5")")) ++wrong;
      return modern(server, R"({"name":"add","inputSchema":{"type":"object"}},{"name":"sub","inputSchema":{}})",
                    R"({"uri":"same:r","name":"r"})");
    }));
    const ScriptedServer second(mcp_script([&](McpPeer& server) {
      return modern(server, kAdd, R"({"uri":"same:r","name":"r"},{"uri":"other:r","name":"o"})");
    }));
    const Mount mounts[] = {{.prefix = "a", .upstream = {.url = first.url("/mcp")}},
                            {.prefix = "b", .upstream = {.url = second.url("/mcp")}}};
    Front front(mounts);
    front.until_up();
    expect(front.names(Listed::tools) == "a_add a_sub b_add ");
    expect(front.names(Listed::resources) == "same:r b+same:r other:r ");
    expect(front.names(Listed::prompts) == "a_p b_p ");
    expect(front.names(Listed::templates) == "t:{x} b+t:{x} ");
    const auto sum = front.client().call("a_add", R"({"x":1.5})", patience());
    expect(sum && contains(sum->text(), "done"));
    expect(front.client().read("same:r", patience()).has_value());
    expect(front.client().read("b+same:r", patience()).has_value());
    expect(front.client().read("t:5", patience()).has_value());
    expect(front.client().prompt("b_p", {}, patience()).has_value());
    const auto none = front.client().call("c_add", {}, patience());
    expect(!none && none.error().code() == kInvalidParams && wrong == 0);
  });
}

TEST(McpGateway, passes_on_that_a_resource_has_changed) {
  with([&] {
    // Each is asked for what is watched, and tells of it at once.
    const auto serve = [&](McpPeer& server) {
      if (server.is("subscriptions/listen") && server.says(R"("resourceSubscriptions":["same:r"])")) {
        begin_changes(server);
        server.event(R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"not:asked"}})");
        server.event(R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"same:r"}})");
        return stay(server);
      }
      return modern(server, kAdd, R"({"uri":"same:r","name":"r"})");
    };
    const ScriptedServer first(mcp_script(serve)), second(mcp_script(serve));
    const Mount mounts[] = {{.prefix = "a", .upstream = {.url = first.url("/mcp")}},
                            {.prefix = "b", .upstream = {.url = second.url("/mcp")}}};
    Front front(mounts);
    front.until_up();
    struct Heard {
      std::atomic<unsigned> first = 0, second = 0, others = 0;
    } heard;
    auto listening = coir::spawn([&] {
      const std::string_view uris[] = {"same:r", "b+same:r"};
      CallOptions options{.deadline = Deadline::after(60s)};
      options.told = [&own = heard](const Notification& notification) {
        if (notification.method != "notifications/resources/updated") return;
        const auto uri = notification.params["uri"].text();
        ++(uri == "same:r" ? own.first : uri == "b+same:r" ? own.second : own.others);
      };
      const auto ended = front.client().listen({.uris = uris}, options);
      expect(!ended && ended.error() == ErrorCode::cancelled);
    });
    until([&] { return heard.first == 1 && heard.second == 1; });
    expect(heard.others == 0);
    expect(listening.cancel().has_value() && listening.join().has_value());
  });
}

TEST(McpGateway, a_change_while_it_begins_to_listen_anew_is_not_lost) {
  with([&] {
    // The upstream has new tools as soon as its first list was sent, and announces nothing.
    std::atomic<unsigned> lists = 0;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      const bool is_new = server.is("tools/list") && ++lists > 1;
      return modern(server, is_new ? R"({"name":"new","inputSchema":{}})" : kAdd, R"({"uri":"same:r","name":"r"})");
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    lists = 0;
    Front front(mounts);
    front.until_up();
    expect(front.names(Listed::tools) == "up_add ");
    const std::string_view uris[] = {"same:r"};
    auto listening =
        coir::spawn([&] { expect(front.client().listen({.uris = uris}, patience()).error() == ErrorCode::cancelled); });
    until([&] { return front.names(Listed::tools) == "up_new "; });
    expect(listening.cancel().has_value() && listening.join().has_value());
  });
}

// numbered writes the JSON of resources r:FIRST, r:FIRST+1 and so on.
std::string_view numbered(std::span<char> room, unsigned count) {
  std::size_t used = 0;
  for (unsigned i = 0; i < count; ++i) {
    used += static_cast<std::size_t>(
        snprintf(room.data() + used, room.size() - used, "%s{\"uri\":\"r:%02u\",\"name\":\"r\"}", i > 0 ? "," : "", i));
  }
  return {room.data(), used};
}

TEST(McpGateway, a_resource_is_heard_of_or_its_subscription_refused) {
  with([&] {
    constexpr unsigned kPlaces = 32;
    char room[2048];
    const std::string_view resources = numbered(room, kPlaces + 2);
    // Requests to listen may be heard in another order than they were sent.
    std::atomic<bool> all_are_named = false, last_alone_is_named = false;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (server.is("subscriptions/listen")) {
        unsigned count = 0;
        for (std::size_t at = 0; (at = server.body.find("\"r:", at)) != server.body.npos; ++at) ++count;
        if (count == kPlaces) all_are_named = true;
        if (count == 1 && server.says("r:33")) last_alone_is_named = true;
      }
      return modern(server, kAdd, resources);
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    Front front(mounts);
    front.until_up();
    const auto listen = [&](std::span<const std::string_view> uris) {
      return front.client().listen({.uris = uris}, patience());
    };
    char names[kPlaces + 2][8];
    std::string_view uris[kPlaces + 2];
    for (unsigned i = 0; i < kPlaces + 2; ++i) uris[i] = coir::format(names[i], "r:", i / 10, i % 10);
    coir::Nursery many;
    many.start([&]() -> std::expected<void, coir::Error> {
      expect(listen(std::span(uris).first(kPlaces)).error() == ErrorCode::cancelled);
      return {};
    });
    until([&] { return all_are_named.load(); });
    const std::string_view more[] = {uris[kPlaces], uris[kPlaces + 1]};
    for (const std::string_view& each : more) {
      const auto refused = listen(std::span(&each, 1));
      expect(!refused && refused.error().code() == kBusy && contains(refused.error().message(), "watched"));
    }
    // Once nobody wants them any more, their places are free, though none of them has changed.
    many.cancel();
    expect(many.join().has_value());
    coir::CancelScope scope;
    auto listening =
        coir::spawn([&] { until([&] { return listen(std::span(more).last(1)).error() == ErrorCode::cancelled; }); });
    until([&] { return last_alone_is_named.load(); });
    expect(listening.cancel().has_value() && listening.join().has_value());
  });
}

TEST(McpGateway, passes_on_progress_errors_and_questions) {
  with([&] {
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (!server.is("tools/call")) return modern(server, kAdd);
      if (server.says("refuse")) return server.error(-32050, "200 OK", R"({"why":1})");
      if (server.says("ask") && !server.says("inputResponses")) {
        return server.result(R"("resultType":"input_required","requestState":"theirs","inputRequests":{"k":)"
                             R"({"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}})");
      }
      if (server.says("ask")) {
        return server.result(server.says(R"("requestState":"theirs")") && server.says(R"("action":"accept")")
                                 ? R"("resultType":"complete","content":[])"
                                 : R"("resultType":"complete","wrong":1)");
      }
      server.begin_events();
      server.event(
          R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.25,"total":1}})");
      return server.result_event(R"("resultType":"complete","content":[],"isError":true)") && server.end_events();
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    McpClientOptions asking{.elicitation = true};
    asking.asked = [](const Question&, coir::JsonWriter& answer) {
      answer.object().member("action", "accept").name("content").object().end().end();
      return true;
    };
    Front front(mounts, {}, asking);
    front.until_up();
    unsigned told = 0;
    CallOptions options = patience();
    options.told = [&](const Notification& notification) {
      told += contains(notification.text, R"("progress":0.25,"total":1)");
    };
    const auto slow = front.client().call("up_add", {}, options);
    expect(slow && slow->is_error() && told == 1);
    const auto refused = front.client().call("up_add", R"({"do":"refuse"})", patience());
    expect(!refused && refused.error().code() == -32050 && refused.error().data() == R"({"why":1})");
    const auto asked = front.client().call("up_add", R"({"do":"ask"})", patience());
    expect(asked && asked->result().find("content"));
  });
}

TEST(McpGateway, an_upstream_that_is_down_is_asked_again_while_the_rest_serves) {
  with([&] {
    std::atomic<bool> works = false;
    const ScriptedServer bad(mcp_script([&](McpPeer& server) { return works && modern(server, kAdd); }));
    const ScriptedServer good(mcp_script([&](McpPeer& server) { return modern(server, kAdd); }));
    const Mount mounts[] = {{.prefix = "bad", .upstream = {.url = bad.url("/mcp")}, .rest = 1ms},
                            {.prefix = "good", .upstream = {.url = good.url("/mcp")}}};
    Front front(mounts, {.longest_pause = 20ms});
    until([&] { return front.is_up(1); });
    expect(front.names(Listed::tools) == "good_add ");
    expect(front.client().call("good_add", {}, patience()).has_value());
    const unsigned before = front.changes;
    works = true;
    until([&] { return front.is_up(0); });
    expect(front.names(Listed::tools) == "bad_add good_add " && front.changes > before);
    expect(front.client().call("bad_add", {}, patience()).has_value());
  });
}

TEST(McpGateway, an_upstream_that_hangs_costs_its_own_calls_alone_and_is_left_alone) {
  with([&] {
    std::atomic<bool> hangs = false;
    std::atomic<unsigned> asked = 0;
    const ScriptedServer slow(mcp_script([&](McpPeer& server) {
      if (!hangs || !server.is("tools/call")) return modern(server, kAdd);
      ++asked;
      return stay(server);
    }));
    const ScriptedServer good(mcp_script([&](McpPeer& server) { return modern(server, kAdd); }));
    // A machine that is so slow that the rest is over before all have called is given a longer one.
    bool in_time = false;
    for (auto rest = 200ms; !in_time; rest *= 2) {
      const Mount mounts[] = {
          {.prefix = "slow", .upstream = {.url = slow.url("/mcp")}, .deadline = 100ms, .failures = 2, .rest = rest},
          {.prefix = "good", .upstream = {.url = good.url("/mcp")}}};
      hangs = false;
      Front front(mounts);
      until([&] { return front.is_up(1); });
      until([&] { return front.is_up(0); });
      hangs = true;
      asked = 0;
      char port[8];
      snprintf(port, sizeof port, "%u", slow.port());
      int codes[5];
      Deadline rests_until;
      for (unsigned i = 0; i < 5; ++i) {
        if (i == 1) rests_until = Deadline::after(100ms + rest);
        const auto late = front.client().call("slow_add", {}, patience());
        codes[i] = late ? 0 : late.error().code();
        // The message names the upstream, and not its address.
        expect(!late && contains(late.error().message(), "slow") && !contains(late.error().message(), port) &&
               !contains(late.error().message(), "127"));
        expect(front.client().call("good_add", {}, patience()).has_value());
      }
      const bool rests = front.gateway().gauges(0).is_resting;
      in_time = !rests_until.passed();
      if (!in_time) continue;
      for (unsigned i = 0; i < 5; ++i) expect(codes[i] == (i < 2 ? kTimedOut : kUpstream));
      expect(asked <= 2 && rests);
      hangs = false;
      until([&] { return front.client().call("slow_add", {}, patience()).has_value(); });
      expect(!front.gateway().gauges(0).is_resting);
    }
  });
}

TEST(McpGateway, keeps_lists_until_a_change_is_told) {
  with([&] {
    std::atomic<unsigned> lists = 0;
    std::atomic<bool> changed = false;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (server.is("tools/list")) {
        ++lists;
        return modern(server, changed ? R"({"name":"new","inputSchema":{}})" : kAdd);
      }
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      begin_changes(server);
      while (!changed) usleep(1000);
      server.event(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}})");
      return stay(server);
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    lists = 0;
    {
      Front front(mounts);
      front.until_up();
      for (int i = 0; i < 3; ++i) expect(front.names(Listed::tools) == "up_add ");
      expect(lists == 1);
      const unsigned before = front.changes;
      changed = true;
      until([&] { return front.changes > before; });
      expect(front.names(Listed::tools) == "up_new " && lists == 2);
    }
    changed = true;
  });
}

TEST(McpGateway, a_change_while_its_list_is_on_the_way_is_not_lost) {
  with([&] {
    std::atomic<unsigned> lists = 0;
    std::atomic<bool> first = false, second = false;
    std::atomic<Front*> seen = nullptr;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      constexpr std::string_view kChanged =
          R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}})";
      if (server.is("tools/list")) {
        const unsigned number = ++lists;
        if (number == 2) {
          // The second change comes in front of a list without it.
          const unsigned before = seen.load()->changes;
          second = true;
          while (seen.load()->changes == before) usleep(1000);
        }
        return modern(server, number > 2 ? R"({"name":"new","inputSchema":{}})" : kAdd);
      }
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      begin_changes(server);
      while (!first) usleep(1000);
      server.event(kChanged);
      while (!second) usleep(1000);
      server.event(kChanged);
      return stay(server);
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    {
      Front front(mounts);
      seen = &front;
      front.until_up();
      expect(front.names(Listed::tools) == "up_add " && lists == 1);
      const unsigned before = front.changes;
      first = true;
      until([&] { return front.changes > before; });
      expect(front.names(Listed::tools) == "up_add " && lists == 2);
      expect(front.names(Listed::tools) == "up_new " && lists == 3);
    }
    first = second = true;
  });
}

TEST(McpGateway, a_list_that_hangs_holds_no_list_up_for_long) {
  with([&] {
    std::atomic<bool> hangs = false;
    const ScriptedServer slow(mcp_script([&](McpPeer& server) {
      if (!server.is("tools/list")) return modern(server, kAdd);
      if (hangs) server.peer().until_gone();
      return !hangs && server.result(R"("resultType":"complete","tools":[{"name":"add","inputSchema":{}}],"ttlMs":1)");
    }));
    const ScriptedServer good(mcp_script([&](McpPeer& server) { return modern(server, kAdd); }));
    const Mount mounts[] = {{.prefix = "slow", .upstream = {.url = slow.url("/mcp")}},
                            {.prefix = "good", .upstream = {.url = good.url("/mcp")}}};
    Front front(mounts);
    front.until_up();
    hangs = true;
    const std::int64_t begun = coir::monotonic_ns();
    // The old list serves, and is not asked for again at once.
    for (int i = 0; i < 3; ++i) expect(front.names(Listed::tools) == "slow_add good_add ");
    expect(coir::monotonic_ns() - begun < 25'000'000'000);
  });
}

TEST(McpGateway, calls_over_the_limit_wait_for_their_turn) {
  with([&] {
    std::atomic<int> inside = 0, most = 0;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (!server.is("tools/call")) return modern(server, kAdd);
      const int now = ++inside;
      if (now > most) most = now;
      usleep(5000);
      --inside;
      return modern(server, kAdd);
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}, .limit = 2}};
    most = 0;
    Front front(mounts);
    front.until_up();
    coir::Nursery nursery;
    for (int i = 0; i < 8; ++i) {
      nursery.start([&] { expect(front.client().call("up_add", {}, patience()).has_value()); });
    }
    expect(nursery.join().has_value() && most <= 2 && front.gateway().gauges(0).calls == 0);
  });
}

TEST(McpGateway, mounts_old_servers_and_programs_and_begins_their_sessions_again_unseen) {
  signal(SIGPIPE, SIG_IGN);
  with([&] {
    std::atomic<unsigned> sessions = 0;
    std::atomic<bool> forgets = false;
    const ScriptedServer old(mcp_script([&](McpPeer& server) {
      char field[64];
      if (server.is("server/discover")) return server.empty("400 Bad Request");
      if (server.is("initialize")) {
        snprintf(field, sizeof field, "Mcp-Session-Id: s%u\r\n", ++sessions);
        return server.result(R"("protocolVersion":"2025-06-18","capabilities":{})", field);
      }
      if (forgets && server.has_field("Mcp-Session-Id", "s1")) return server.empty("404 Not Found");
      if (server.gets("GET ")) return server.empty("405 Method Not Allowed");
      if (server.is("notifications/initialized")) return server.empty("202 Accepted");
      if (server.is("tools/list")) return server.result(R"("tools":[{"name":"add","inputSchema":{"type":"object"}}])");
      if (server.is("tools/call")) return server.result(R"("content":[])");
      return server.error(-32601, "200 OK");
    }));
    const Shell program(
        "while read -r line; do id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*}; case $line in"
        " *tools/call*die*) exit 1;; *server/discover*) r='\"supportedVersions\":[\"2026-07-28\"]';;"
        " *tools/list*) r='\"tools\":[{\"name\":\"add\",\"inputSchema\":{}}]';; *subscriptions*) continue;; *) r=;; "
        "esac;"
        " printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\\n' \"$id\" \"$r\"; done");
    const Mount mounts[] = {{.prefix = "old", .upstream = {.url = old.url("/mcp")}},
                            {.prefix = "sh", .upstream = {.command = program.argv, .pause = 1ms}}};
    sessions = 0;
    forgets = false;
    Front front(mounts);
    front.until_up();
    expect(front.names(Listed::tools) == "old_add sh_add ");
    expect(front.client().call("old_add", {}, patience()).has_value());
    forgets = true;
    expect(front.client().call("old_add", {}, patience()).has_value() && sessions == 2);
    expect(front.client().call("sh_add", {}, patience()).has_value());
    const auto died = front.client().call("sh_add", R"({"do":"die"})", patience());
    expect(!died && died.error().code() == kUpstream && contains(died.error().message(), "sh"));
    expect(front.client().call("sh_add", {}, patience()).has_value());
  });
}

TEST(McpGateway, refuses_mounts_that_cannot_be_told_apart) {
  const Mount same[] = {{.prefix = "a", .upstream = {.url = "http://a/"}},
                        {.prefix = "a", .upstream = {.url = "http://b/"}}};
  const Mount wrong[] = {{.prefix = "a b", .upstream = {.url = "http://a/"}}};
  const Mount nothing[] = {{.prefix = "a"}};
  for (const auto mounts : {std::span<const Mount>(same), std::span<const Mount>(wrong),
                            std::span<const Mount>(nothing), std::span<const Mount>()}) {
    const auto gateway = Gateway::create(mounts);
    CHECK_TRUE(!gateway && gateway.error() == ErrorCode::invalid);
  }
  CHECK_EQUAL(0u, coir::account::mcp.used());
}

}  // namespace mcp_gateway_test
