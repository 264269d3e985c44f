// Metrics: one page of the server that is asked and of all parts that were added.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/format.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>
#include <coir/http/routes.h>

#include <memory>
#include <span>
#include <string_view>

#include "tests/support/expectations.h"
#include "tests/support/folder.h"
#include "tests/unit/http/run_beside.h"

#if COIR_STREAMS
#include <coir/events.h>
#include <coir/websocket.h>
#endif

namespace metrics_test {

using namespace coir::http;
using namespace std::chrono_literals;
using coir::Deadline;
using coir::TcpListener;
using coir::TcpStream;

namespace {

// Page is the metrics of a table's own server.
struct Page {
  char text[65536];
  std::size_t size = 0;

  explicit Page(const coir::Address& address) {
    auto stream = TcpStream::connect(address, Deadline::after(60s));
    // Content in chunks could have a line in two of them.
    if (!stream || !stream->write("GET /metrics HTTP/1.0\r\n\r\n", Deadline::after(60s))) return;
    while (auto got = stream->read(std::span(text).subspan(size), Deadline::after(60s))) size += *got;
  }
  bool has(std::string_view line) const { return count(line) != 0; }
  int count(std::string_view line) const {
    int found = 0;
    const std::string_view all(text, size);
    for (std::size_t at = 0; (at = all.find(line, at)) != all.npos; at += line.size()) ++found;
    return found;
  }
};

template <class App, class Visit>
void asked(App& app, Visit visit) {
  auto server = Server::create(answered_by(app));
  auto listener = TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
  CHECK(server.has_value() && listener.has_value());
  const coir::Address address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  coir::test::run_beside(*server, [&] { visit(*std::make_unique<Page>(address)); });
}

void write_two(MetricsText& text) {
  write_counter(text, "two_total", "Two.", 2);
}

}  // namespace

TEST_GROUP_BASE(Metrics, coir::test::Expecting) {
  void teardown() override { check(); }
};

TEST(Metrics, each_server_that_is_asked_shows_its_own_connections) {
  coir::http::Metrics metrics;
  auto app = routes(get<"/metrics">(metrics));
  for (int i = 0; i < 2; ++i) {
    asked(app, [&](const Page& page) {
      expect(page.has("\ncoir_http_connections_accepted_total 1\n"));
      expect(page.has("\ncoir_http_connections{state=\"active\"} 1\n"));
      expect(page.has("\nprocess_resident_memory_bytes "));
    });
  }
}

TEST(Metrics, what_a_callable_writes_is_on_the_page_in_the_order_of_add) {
  coir::http::Metrics metrics;
  const auto more = [seven = 7](MetricsText& text) {
    write_gauge(text, "seven", "Seven.", static_cast<unsigned>(seven));
  };
  metrics.add(more);
  metrics.add(write_two);
  auto app = routes(get<"/metrics">(metrics));
  asked(app, [&](const Page& page) {
    expect(page.has("\nseven 7\n# HELP two_total Two.\n# TYPE two_total counter\ntwo_total 2\n"));
  });
}

TEST(Metrics, parts_of_one_kind_are_one_family) {
  coir::http::Metrics metrics;
  const coir::test::Folder folder;
  FileTree one(folder.path()), other(folder.path());
  metrics.add(one);
  metrics.add(write_two);
  metrics.add(other);
#if COIR_STREAMS
  struct Chat {
    void message(HubSocket&, const WebSocketMessage&) {}
  };
  EventHub ticks, tocks;
  WebSocketHub<Chat> chat;
  metrics.add(ticks);
  metrics.add(chat);
  metrics.add(tocks);
#endif
  auto app = routes(get<"/metrics">(metrics));
  asked(app, [&](const Page& page) {
    expect(page.has("\ncoir_http_file_cache_bytes 0\n# HELP two_total"));
    expect(page.count("# TYPE coir_http_file_cache_bytes gauge\n") == 1);
#if COIR_STREAMS
    expect(page.count("# TYPE coir_event_subscribers gauge\ncoir_event_subscribers 0\n") == 1);
    expect(page.count("\ncoir_event_subscribers_dropped_total 0\n") == 1);
    expect(page.has("\ncoir_websockets 0\n") && page.has("\ncoir_websockets_dropped_total 0\n"));
#endif
  });
}

}  // namespace metrics_test
