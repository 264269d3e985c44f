// A crawler: from one page it follows the links that stay on the same server, some at a time, and ends when it has seen all
// of them, or when the time for all of it is up. Then it lists what it found.
//
//   crawler HOST:PORT/PATH [AT_A_TIME [SECONDS]]
//
// Fibers take paths from one channel and put what they find into it. The fiber that handles the last known path closes
// the channel. The one deadline is in force around all of it: no call is handed any.

#include <coir/cancel_scope.h>
#include <coir/channel.h>
#include <coir/group.h>
#include <coir/heap.h>
#include <coir/mutex.h>
#include <coir/print.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <stdlib.h>

#include <charconv>
#include <map>
#include <string>

using coir::ErrorCode;

namespace {

constexpr std::size_t kMostPages = 1000, kMostBytes = 256 * 1024;

struct Page {
  int status = 0;  // 0: not fetched
  std::size_t bytes = 0;
  coir::Error fault;
};

// Crawl is what is known, and what is to be done.
class Crawl {
 public:
  Crawl(std::string_view host, std::uint16_t port) : host_(host), port_(port) {}

  // note takes a path up if it is new.
  void note(std::string_view path) {
    const auto held = mutex_.lock();
    if (!held || pages_.size() == kMostPages || !pages_.emplace(path, Page()).second) return;
    ++open_;
    static_cast<void>(paths_.send(std::string(path)));  // unbounded: never waits
  }

  // work handles paths until there are no more.
  std::expected<void, coir::Error> work() {
    for (;;) {
      const auto path = paths_.receive();
      if (!path) return path.error() == ErrorCode::closed ? Outcome() : std::unexpected(path.error());
      Page page;
      if (const auto fetched = fetch(*path, page); !fetched) page.fault = fetched.error();
      const auto held = mutex_.lock();
      if (!held) return std::unexpected(held.error());
      pages_[*path] = page;
      if (--open_ == 0) paths_.close();
    }
  }

  void report() const {
    for (const auto& [path, page] : pages_) {
      if (page.fault.code != ErrorCode{}) {
        coir::print("---  ", path, "  ", page.fault, "\n");
      } else if (page.status == 0) {
        coir::print("---  ", path, "  not fetched\n");
      } else {
        coir::print(page.status, "  ", path, "  ", page.bytes, " bytes\n");
      }
    }
  }

 private:
  using Outcome = std::expected<void, coir::Error>;

  Outcome fetch(const std::string& path, Page& page) {
    auto stream = coir::connect(host_, port_);
    if (!stream) return std::unexpected(stream.error());
    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + host_ + "\r\n\r\n";
    if (auto sent = stream->write(request); !sent) return sent;
    std::string answer;
    for (char piece[2048];;) {
      const auto got = stream->read(piece);
      if (!got && got.error() == ErrorCode::end_of_stream) break;
      if (!got) return std::unexpected(got.error());
      if (answer.append(piece, *got).size() > kMostBytes) return std::unexpected(coir::Error(ErrorCode::limit));
    }
    const std::size_t head = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.") || head == answer.npos) {
      return std::unexpected(coir::Error(ErrorCode::protocol));
    }
    std::from_chars(answer.data() + 9, answer.data() + 12, page.status);
    const std::string_view content = std::string_view(answer).substr(head + 4);
    page.bytes = content.size();
    if (page.status == 200) follow(content);
    return {};
  }

  // follow notes the links of a page that begin with a slash.
  void follow(std::string_view content) {
    constexpr std::string_view kLink = "href=\"/";
    while (true) {
      const std::size_t at = content.find(kLink);
      if (at == content.npos) return;
      content.remove_prefix(at + kLink.size() - 1);
      const std::size_t end = content.find_first_of("\"#");
      if (end == content.npos) return;
      if (!content.starts_with("//")) note(content.substr(0, end));
      content.remove_prefix(end);
    }
  }

  std::string host_;
  std::uint16_t port_;
  coir::Channel<std::string> paths_{{.capacity = coir::kUnbounded}};
  coir::Mutex mutex_;
  std::map<std::string, Page, std::less<>> pages_;
  std::size_t open_ = 0;  // paths that were noted and not handled
};

int crawl(std::string_view url, int at_a_time, int seconds) {
  if (url.starts_with("http://")) url.remove_prefix(7);
  const std::size_t slash = url.find('/'), colon = url.substr(0, slash).rfind(':');
  std::uint16_t port = 80;
  if (colon != url.npos) std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
  Crawl crawl(url.substr(0, colon < slash ? colon : slash), port);
  crawl.note(slash == url.npos ? "/" : url.substr(slash));
  const auto deadline = coir::Deadline::after(std::chrono::seconds(seconds));
  const auto done = coir::with_deadline(deadline, [&] {
    coir::Group group;
    for (int i = 0; i < at_a_time; ++i) {
      group.start({.name = "fetcher", .stack = 16 * 1024}, [&crawl] { return crawl.work(); });
    }
    return group.join();
  });
  crawl.report();
  // The last pages may have been those whose fetch the deadline ended.
  const bool in_time = done && !deadline.passed();
  if (!in_time) coir::print("the time is up\n");
  return in_time ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const int at_a_time = count > 2 ? atoi(words[2]) : 8, seconds = count > 3 ? atoi(words[3]) : 30;
  if (count < 2 || count > 4 || at_a_time < 1 || seconds < 1) {
    coir::print("usage: crawler HOST:PORT/PATH [AT_A_TIME [SECONDS]]    8 at a time and 30 seconds unless told\n");
    return count == 1 ? 0 : 2;
  }
  return coir::run([&] { return crawl(words[1], at_a_time, seconds); });
}
