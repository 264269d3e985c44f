// coir/mcp/gateway.h: what clients hear of mounted servers, some of which refuse a part or are slow.

#include <CppUTest/TestHarness.h>

#include <algorithm>

#include "tests/unit/mcp/gateway/front.h"

namespace mcp_gateway_changes_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;

namespace {

constexpr std::string_view kToolsChanged =
    R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}})";

void tell_of(McpPeer& server, std::string_view uri) {
  char text[128];
  server.event(coir::format(text, R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":")",
                            uri, R"("}})"));
}

// Listening is a client of a front that listens for one resource, until its end.
class Listening {
 public:
  Listening(Front& front, std::string_view uri)
      : front_(front), uri_(uri), fiber_(coir::spawn([this] {
          CallOptions options = patience();
          options.told = [this](const Notification& notification) {
            heard_ += notification.method == "notifications/resources/updated";
          };
          static_cast<void>(front_.client().listen({.uris = std::span(&uri_, 1)}, options));
        })) {}
  ~Listening() {
    if (!fiber_.cancel() || !fiber_.join()) __builtin_trap();
  }
  bool wants(std::string_view uri) const { return uri == uri_; }
  bool hears() {
    return until([this] { return heard_ > 0; }, Deadline::after(20s));
  }

 private:
  Front& front_;
  const std::string_view uri_;
  std::atomic<unsigned> heard_ = 0;
  coir::Fiber fiber_;
};

// old answers as a server of 2025-11-25 with the tool `add` and a template.
bool old(McpPeer& server) {
  if (server.is("server/discover")) return server.empty("400 Bad Request");
  if (server.is("initialize")) return server.result(R"("protocolVersion":"2025-11-25","capabilities":{})");
  if (server.is("notifications/initialized")) return server.empty("202 Accepted");
  if (server.is("tools/list")) return server.result(R"("tools":[{"name":"add","inputSchema":{}}])");
  if (server.is("resources/list")) return server.result(R"("resources":[])");
  if (server.is("prompts/list")) return server.result(R"("prompts":[])");
  if (server.is("resources/templates/list")) {
    return server.result(R"("resourceTemplates":[{"uriTemplate":"t:{x}","name":"t"}])");
  }
  return server.result(R"("content":[])");
}

}  // namespace

TEST_GROUP_BASE(McpGatewayChanges, WithMounts) {};

TEST(McpGatewayChanges, a_resource_that_an_old_server_refuses_costs_no_other) {
  // Servers say it by a code of their own, or by 0.
  for (const int code : {-32002, -32603, 0}) {
    with([&] {
      std::atomic<bool> good = false, bad = false;
      FrontOf front([&](McpPeer& server) {
        if (server.is("resources/subscribe") && server.says("t:bad")) {
          bad = true;
          return server.error(code, "200 OK");
        }
        if (server.is("resources/subscribe")) good = true;
        if (!server.gets("GET ")) return old(server);
        server.begin_events();
        if (bad) tell_of(server, "t:good");
        return stay(server);
      });
      Listening first(front, "t:good");
      until([&] { return good.load(); });
      const Listening second(front, "t:bad");
      expect(first.hears());
    });
  }
}

TEST(McpGatewayChanges, a_server_that_is_busy_is_asked_again_for_all_resources) {
  with([&] {
    std::atomic<bool> first_is_known = false, refused = false;
    FrontOf front([&](McpPeer& server) {
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      const bool has_first = server.says("t:good"), has_second = server.says("t:more");
      if (has_first && has_second && !refused.exchange(true)) return server.error(kBusy, "503 Service Unavailable");
      begin_changes(server);
      if (has_first) first_is_known = true;
      if (has_first && refused) tell_of(server, "t:good");
      return stay(server);
    });
    Listening first(front, "t:good");
    until([&] { return first_is_known.load(); });
    const Listening second(front, "t:more");
    expect(first.hears());
  });
}

TEST(McpGatewayChanges, a_resource_that_a_server_refuses_goes_and_the_others_stay) {
  // It is refused once all are named. A server that refuses for a reason that might pass is asked a few times first.
  constexpr std::string_view kUris[] = {"t:0", "t:1", "t:2"};
  for (const int code : {kInvalidParams, kInternalError}) {
    for (const std::string_view bad : kUris) {
      with([&] {
        std::atomic<std::ptrdiff_t> known = 0;
        std::atomic<bool> is_gone = false;
        FrontOf front([&](McpPeer& server) {
          if (!server.is("subscriptions/listen")) return modern(server, kAdd);
          const auto names = [&](std::string_view uri) { return server.says(uri); };
          if (std::ranges::all_of(kUris, names)) is_gone = true;
          if (is_gone && names(bad)) return server.error(code, "200 OK");
          // The stream of none, which comes first, may be heard after the next one.
          if (const auto count = std::ranges::count_if(kUris, names)) known = count;
          begin_changes(server);
          for (const std::string_view uri : kUris) {
            if (is_gone && names(uri)) tell_of(server, uri);
          }
          return stay(server);
        });
        Listening first(front, kUris[0]);
        until([&] { return known == 1; });
        Listening second(front, kUris[1]);
        until([&] { return known == 2; });
        Listening third(front, kUris[2]);
        for (Listening* each : {&first, &second, &third}) expect(each->wants(bad) || each->hears());
      });
    }
  }
}

TEST(McpGatewayChanges, a_server_that_refuses_all_keeps_its_resources) {
  with([&] {
    std::atomic<bool> first_is_known = false, refused_all = false;
    FrontOf front(
        [&](McpPeer& server) {
          if (!server.is("subscriptions/listen")) return modern(server, kAdd);
          const bool has_first = server.says("t:good"), has_second = server.says("t:more");
          if (first_is_known && !refused_all) {
            refused_all = !has_first && !has_second;
            return server.error(kInvalidParams, "200 OK");
          }
          if (has_first) first_is_known = true;
          begin_changes(server);
          if (refused_all && has_first) tell_of(server, "t:good");
          if (refused_all && has_second) tell_of(server, "t:more");
          return stay(server);
        },
        {.longest_pause = 20ms});
    Listening first(front, "t:good");
    until([&] { return first_is_known.load(); });
    Listening second(front, "t:more");
    expect(first.hears() && second.hears());
  });
}

TEST(McpGatewayChanges, a_refusal_behind_an_outage_costs_no_resource) {
  with([&] {
    std::atomic<bool> first_is_known = false, both_are_known = false, refused = false;
    std::atomic<unsigned> failures = 0;
    FrontOf front([&](McpPeer& server) {
      if (server.is("tools/list") && both_are_known && failures < 4) {
        ++failures;
        return server.empty("500 Internal Server Error");
      }
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      const bool has_first = server.says("t:good"), has_second = server.says("t:more");
      if (both_are_known && !refused.exchange(true)) return server.error(kBusy, "503 Service Unavailable");
      begin_changes(server);
      if (has_first) first_is_known = true;
      if (has_first && has_second && !both_are_known.exchange(true)) return false;
      if (refused && has_first) tell_of(server, "t:good");
      if (refused && has_second) tell_of(server, "t:more");
      return stay(server);
    });
    Listening first(front, "t:good");
    until([&] { return first_is_known.load(); });
    Listening second(front, "t:more");
    expect(first.hears() && second.hears());
  });
}

TEST(McpGatewayChanges, pauses_of_an_outage_pass_although_streams_are_short) {
  with([&] {
    constexpr auto kPause = 10ms;
    constexpr unsigned kFailures = 8;  // the next pause is 256 times as long
    std::atomic<unsigned> failures = 0, streams = 0;
    std::atomic<std::int64_t> first_ns = 0, third_ns = 0;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (server.is("tools/list") && failures < kFailures) {
        ++failures;
        return server.empty("500 Internal Server Error");
      }
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      const unsigned number = ++streams;
      if (number == 1) first_ns = coir::monotonic_ns();
      if (number == 3) third_ns = coir::monotonic_ns();
      begin_changes(server);
      usleep(200'000);  // longer than eight pauses
      return server.result_event(R"("resultType":"complete")") && server.end_events();
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}, .failures = 2 * kFailures}};
    Front front(mounts, {.pause = kPause});
    expect(until([&] { return third_ns != 0; }, Deadline::after(60s)));
    expect(third_ns - first_ns < 2 * 256 * std::chrono::nanoseconds(kPause).count());
  });
}

TEST(McpGatewayChanges, a_stream_that_ends_at_once_is_begun_less_and_less_often) {
  with([&] {
    constexpr auto kPause = 30ms;
    constexpr std::int64_t kStreams = 7;
    std::atomic<unsigned> streams = 0;
    std::atomic<std::int64_t> first_ns = 0, last_ns = 0;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      const unsigned number = ++streams;
      if (number == 1) first_ns = coir::monotonic_ns();
      if (number == kStreams) last_ns = coir::monotonic_ns();
      return begin_changes(server) && server.result_event(R"("resultType":"complete")") && server.end_events();
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    Front front(mounts, {.pause = kPause});
    until([&] { return last_ns != 0; });
    // Each pause is twice the one before; on a machine that needs the pause for a stream, that and the pause have passed.
    const std::int64_t pause_ns = std::chrono::nanoseconds(kPause).count();
    expect(last_ns - first_ns >= 2 * (kStreams - 2) * pause_ns);
  });
}

TEST(McpGatewayChanges, a_list_that_takes_longer_than_clients_wait_comes_all_the_same) {
  with([&] {
    std::atomic<bool> changed = false;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (server.is("tools/list") && changed) {
        usleep(3'000'000);  // clients wait for two seconds
        return modern(server, R"({"name":"new","inputSchema":{}})");
      }
      if (!server.is("subscriptions/listen")) return modern(server, kAdd);
      begin_changes(server);
      while (!changed) usleep(1000);
      server.event(kToolsChanged);
      return stay(server);
    }));
    const Mount mounts[] = {{.prefix = "up", .upstream = {.url = upstream.url("/mcp")}}};
    {
      Front front(mounts);
      front.until_up();
      unsigned before = front.changes;
      changed = true;
      until([&] { return front.changes > before; });
      before = front.changes;
      expect(front.names(Listed::tools) == "up_add ");
      // Until the list is there the upstream itself knows the name.
      expect(front.client().call("up_new", {}, patience()).has_value());
      // A client that was given the old list hears of the new one.
      expect(until([&] { return front.changes > before; }, Deadline::after(60s)));
      expect(front.names(Listed::tools) == "up_new ");
    }
    changed = true;
  });
}

TEST(McpGatewayChanges, a_list_that_is_refused_or_too_long_takes_nothing_else_away) {
  with([&] {
    std::atomic<bool> changed = false;
    const ScriptedServer upstream(mcp_script([&](McpPeer& server) {
      if (server.is("prompts/list")) return server.error(kInternalError, "200 OK");
      if (server.is("tools/list") && changed) return modern(server, R"({"name":"new","inputSchema":{}})");
      if (!server.is("subscriptions/listen")) {
        return modern(server, kAdd, R"({"uri":"r:1","name":"a name that is too long for the whole list"})");
      }
      begin_changes(server);
      while (!changed) usleep(1000);
      server.event(kToolsChanged);
      return stay(server);
    }));
    const Mount mounts[] = {
        {.prefix = "up", .upstream = {.url = upstream.url("/mcp")}, .failures = 2, .rest = 60s, .max_list = 64}};
    {
      Front front(mounts);
      expect(until([&] { return front.is_up(0); }, Deadline::after(20s)));
      for (int i = 0; i < 6; ++i) expect(front.client().call("up_add", {}, patience()).has_value());
      expect(front.names(Listed::tools) == "up_add " && front.names(Listed::prompts).empty() &&
             front.names(Listed::resources).empty() && front.names(Listed::templates) == "t:{x} ");
      changed = true;
      expect(until([&] { return front.names(Listed::tools) == "up_new "; }, Deadline::after(20s)));
    }
    changed = true;
  });
}

TEST(McpGatewayChanges, a_refusal_is_no_failure_of_the_server) {
  // A request that is answered by the code 0 has been answered.
  with([&] {
    FrontOf front(
        [&](McpPeer& server) {
          if (!server.is("tools/call")) return modern(server, kAdd);
          return server.error(0, "200 OK", R"({"why":1})");
        },
        {}, {.failures = 1, .rest = 60s});
    for (int i = 0; i < 2; ++i) {
      const auto refused = front.client().call("up_add", {}, patience());
      expect(!refused && refused.error().code() == kInternalError && refused.error().data() == R"({"why":1})");
    }
    expect(!front.gateway().gauges(0).is_resting);
  });
}

}  // namespace mcp_gateway_changes_test
