// Content that is kept in a file before the application is asked: what it costs, for how long, and what refuses it.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/event.h>
#include <coir/format.h>
#include <dirent.h>
#include <limits.h>
#include <string.h>

#include <optional>

#include "fastcgi/fast_cgi.h"
#include "proxy/upstreams/upstream.h"
#include "tests/support/folder.h"
#include "tests/unit/fastcgi/application.h"
#include "tests/unit/http/handler_server.h"

namespace fastcgi_kept_content_test {

using namespace coir::test;
using coir::Address;
using coir::account::http;

namespace {

constexpr std::size_t kContent = 900'000, kFirst = 600'000;
// A session's buffers, and a piece of content that is not in the file yet.
constexpr std::size_t kSmall = 100'000;

struct Kept {
  const char* folder;  // of the files
  bool keeps_connections = false;
  std::optional<coir::http::Upstreams> group = {};
  std::atomic<unsigned> heard{0};  // contents that applications have heard whole
  coir::Event go = {};
  coir::http::FastCgiCounters counters = {};
};
Kept* g_kept;

void pass(Exchange& exchange) {
  coir::http::forward_to_fastcgi(
      exchange, g_kept->group->group(), {.name = "/app"},
      {.first_byte = 20s, .idle = 20s, .keep = g_kept->keeps_connections, .spool = g_kept->folder}, &g_kept->counters);
}

// hear_content tells whether the whole content comes next.
bool hear_content(Application& application) {
  std::size_t have = 0;
  while (application.hear() == static_cast<unsigned>(coir::http::FastCgiType::input)) {
    if (application.content().empty()) return have == kContent;
    have += application.content().size();
  }
  return false;
}

// spool_files counts the files without a name in a folder that this process has open.
int spool_files(const char* folder) {
  int count = 0;
  DIR* const all = opendir("/proc/self/fd");
  while (const dirent* const each = readdir(all)) {
    char path[PATH_MAX] = {};
    if (readlinkat(dirfd(all), each->d_name, path, sizeof path - 1) <= 0) continue;
    count += strncmp(path, folder, strlen(folder)) == 0 && strstr(path, " (deleted)") != nullptr;
  }
  closedir(all);
  return count;
}

}  // namespace

TEST_GROUP_BASE(FastCgiKeptContent, HandlerServer) {
  const std::string_view content{text_, kContent};

  void teardown() override {
    http.set_ceiling(SIZE_MAX);
    HandlerServer::teardown();
  }

  // beside runs `visit` with a server in front of an application of that script.
  template <class Visit>
  void beside(const char* folder, bool keeps_connections, ScriptedServer::Script script, Visit visit) {
    memset(text_, 'x', sizeof text_);
    serving({.handler = pass}, [&](Server& server, const Address& address, Seen&) {
      Kept kept{.folder = folder, .keeps_connections = keeps_connections};
      g_kept = &kept;
      std::optional<ScriptedServer> application(std::in_place, script);
      char url[32];
      kept.group.emplace(
          std::move(*coir::http::Upstreams::create(coir::format(url, "127.0.0.1:", application->port()))));
      visit(address, *application);
      expect(server.stop(soon()).has_value());
      expect(spool_files(folder) == 0);
      kept.group.reset();
      application.reset();
    });
  }

  static bool begin(Client& client, std::string_view method) {
    char head[100];
    return client.say(
        coir::format(head, method, " / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", kContent, "\r\n\r\n"));
  }

  // costs has a client send content in two parts, and its script wait for a while once it has all.
  void costs(const char* folder, bool charged) {
    const auto script = [](Peer& peer) {
      const auto application = std::make_unique<Application>(peer);
      if (!application->hear_beginning() || !hear_content(*application)) return;
      ++g_kept->heard;
      static_cast<void>(g_kept->go.wait());
      static_cast<void>(application->say("Content-Length: 5\n\nhello") && application->end());
      peer.until_gone();
    };
    beside(folder, false, script, [&](const Address& address, ScriptedServer& application) {
      const std::size_t before = http.used();
      Client client(address);
      expect(begin(client, "POST") && client.say(content.substr(0, kFirst)));
      const auto size = [&] { return http.used() > before ? http.used() - before : 0; };
      if (charged) {
        expect(until([&] { return size() > kFirst - kSmall; }, soon()));
      } else {
        expect(until([&] { return spool_files(folder) == 1; }, soon()));
      }
      expect(application.connections() == 0);
      expect(client.say(content.substr(kFirst)));
      expect(until([&] { return g_kept->heard == 1; }, soon()));
      expect(until([&] { return spool_files(folder) == 0 && size() < kSmall; }, soon()));
      expect(!charged || http.high_water() > before + kContent - kSmall);
      g_kept->go.set();
      expect(client.hear("\r\n\r\nhello"));
    });
  }

 private:
  static char text_[kContent];
};

char TEST_GROUP_CppUTestGroupFastCgiKeptContent::text_[kContent];

TEST(FastCgiKeptContent, a_file_in_ram_is_charged_until_the_application_has_it) {
  if (ram_folder() != nullptr) costs(ram_folder(), true);
}

TEST(FastCgiKeptContent, a_file_on_a_disk_is_not_charged_and_is_closed_once_the_application_has_it) {
  coir::test::Folder folder;
  if (is_in_ram(folder.path())) return;
  http.set_ceiling(http.used() + kFirst);
  costs(folder.path(), false);
}

TEST(FastCgiKeptContent, what_the_ledger_has_no_room_for_is_503) {
  if (ram_folder() == nullptr) return;
  beside(
      ram_folder(), false, [](Peer&) {},
      [&](const Address& address, ScriptedServer& application) {
        const std::size_t before = http.used();
        Client client(address);
        http.set_ceiling(before + kFirst / 2);
        expect(begin(client, "POST") && client.say(content.substr(0, kFirst)));
        expect(client.hear("HTTP/1.1 503 ") && client.hear("\r\nRetry-After: 1\r\n"));
        expect(until([&] { return spool_files(ram_folder()) == 0 && http.used() < before + kSmall; }, soon()));
        expect(application.connections() == 0);
        http.set_ceiling(SIZE_MAX);
      });
}

TEST(FastCgiKeptContent, a_folder_that_takes_no_file_is_500_and_counted) {
  beside(
      "/dev/null", false, [](Peer&) {},
      [&](const Address& address, ScriptedServer& application) {
        Client client(address);
        expect(begin(client, "POST") && client.say(content.substr(0, kFirst)));
        expect(client.hear("HTTP/1.1 500 "));
        expect(g_kept->counters.unspooled.load() == 1 && application.connections() == 0);
      });
}

// The application ends a connection that has rested just as it gets the request.
TEST(FastCgiKeptContent, what_may_have_to_be_sent_again_is_kept_until_the_application_says_something) {
  if (ram_folder() == nullptr) return;
  const auto script = [](Peer& peer) {
    const auto application = std::make_unique<Application>(peer);
    while (application->hear_beginning() && hear_content(*application)) {
      if (++g_kept->heard == 2) return;
      if (!application->say("Content-Length: 5\n\nhello") || !application->end()) return;
    }
  };
  beside(ram_folder(), true, script, [&](const Address& address, ScriptedServer& application) {
    Client client(address);
    for (int i = 0; i < 2; ++i) {
      client.have = 0;
      expect(begin(client, "PUT") && client.say(content) && client.hear("\r\n\r\nhello"));
    }
    expect(g_kept->heard == 3 && application.connections() == 2);
  });
}

}  // namespace fastcgi_kept_content_test
