// An HTTP service for one folder: files are uploaded whole or not at all, and a long poll tells what has changed.
//
//   PUT /files/NAME          the content takes the name's place when all of it has come and lies on the disk
//   GET /files/NAME          the file
//   DELETE /files/NAME
//   GET /changes?after=N     waits until there is a change after number N: {"last":7,"changes":[{"at":7,"name":"a"}]}
//
// SIGTERM answers the polls that wait, lets uploads end, and ends the program.

#include <coir/cancel_scope.h>
#include <coir/condition.h>
#include <coir/file.h>
#include <coir/http.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::format;

namespace {

constexpr std::size_t kMostName = 64, kMostPath = 512;
constexpr std::uint64_t kMostBytes = 64 * 1024 * 1024;

// Changes remembers the latest changes, each by its number, and wakes who waits for the next.
class Changes {
 public:
  std::uint64_t add(std::string_view name) {
    const coir::Shield shield(Deadline::never());  // the file has changed: that is told in any case
    const auto held = mutex_.lock();
    Change& change = changes_[++last_ % kKept];
    change.size = name.copy(change.name, sizeof change.name);
    changed_.notify_all();
    return last_;
  }

  // wait returns when there is a change after that number. Errors: timed_out, cancelled.
  std::expected<void, coir::Error> wait(std::uint64_t after, Deadline deadline) {
    auto held = mutex_.lock();
    if (!held) return std::unexpected(held.error());
    return changed_.wait_until(*held, [&] { return last_ > after; }, deadline);
  }

  // list writes the changes after a number as JSON. A client that was away for too long gets the changes that are still known.
  std::string_view list(std::uint64_t after, std::span<char> into) {
    const coir::Shield shield(Deadline::never());  // a poll that the stop has ended is answered, too
    const auto held = mutex_.lock();
    coir::Formatter out(into);
    out.add("{\"last\":", last_, ",\"changes\":[");
    std::uint64_t at = last_ > kKept ? last_ - kKept : 0;
    if (at < after) at = after;
    for (const char* comma = ""; at < last_; comma = ",") {
      const Change& change = changes_[++at % kKept];
      out.add(comma, "{\"at\":", at, ",\"name\":", coir::json_quoted({change.name, change.size}), "}");
    }
    return out.add("]}\n").text();
  }

 private:
  static constexpr std::uint64_t kKept = 32;
  struct Change {
    char name[kMostName];
    std::size_t size;
  };

  coir::Mutex mutex_;
  coir::Condition changed_;
  Change changes_[kKept] = {};
  std::uint64_t last_ = 0;
};

struct Service {
  const char* folder;
  std::chrono::nanoseconds patience;  // of a poll
  Changes changes{};

  // path is where a file lies; empty if it may not be called so.
  std::string_view path(std::string_view name, std::span<char> into) const {
    if (name.size() > kMostName || name.starts_with('.') || name.contains('\0')) return {};
    coir::Formatter out(into);
    out.add(folder, "/files/", name, '\0');
    return out.fits() ? out.text() : std::string_view();
  }
};

// refuse answers what the disk says.
void refuse(Exchange& exchange, coir::Error error) {
  exchange.respond_status(error.is_disk_full() ? 507 : error == coir::ErrorCode::not_found ? 404 : 500);
}

void changed(Service& service, Exchange& exchange, int status, std::string_view name) {
  char text[64];
  exchange.respond(status, "application/json", format(text, "{\"at\":", service.changes.add(name), "}\n"));
}

void upload(Service& service, Exchange& exchange, std::string_view name) {
  char path[kMostPath];
  const std::span<char> piece = exchange.scratch();
  if (service.path(name, path).empty()) return exchange.respond_status(400);
  const bool known = access(path, F_OK) == 0;
  auto next = coir::FileReplacement::begin(path);
  if (!next) return refuse(exchange, next.error());
  auto got = exchange.read_body(piece);
  for (; got; got = exchange.read_body(piece)) {
    if (auto written = next->write(piece.first(*got)); !written) return refuse(exchange, written.error());
  }
  if (got.error() != coir::ErrorCode::end_of_stream) return;  // the client has gone: so has what it sent
  if (auto done = next->commit(); !done) return refuse(exchange, done.error());
  changed(service, exchange, known ? 200 : 201, name);
}

void remove(Service& service, Exchange& exchange, std::string_view name) {
  char path[kMostPath];
  if (service.path(name, path).empty()) return exchange.respond_status(400);
  if (unlink(path) != 0) return refuse(exchange, coir::Error::from_errno(errno));
  changed(service, exchange, 200, name);
}

void poll(Service& service, Exchange& exchange) {
  const auto text = query_encoded(exchange.request().query, "after");
  std::uint64_t after = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (fault != std::errc() || end != text.data() + text.size()) return exchange.respond_status(400);
  // When the server stops, or the time is up, the list is empty.
  static_cast<void>(service.changes.wait(after, Deadline::after(service.patience)));
  exchange.respond(200, "application/json", service.changes.list(after, exchange.scratch()),
                   "Cache-Control: no-store\r\n");
}

}  // namespace

int main(int count, char** words) {
  if (count < 3 || count > 4) {
    puts("usage: service FOLDER ADDRESS [SECONDS]    SECONDS: how long a poll waits, 25 unless told");
    return 0;
  }
  char path[kMostPath];
  mkdir(format(path, words[1], "/files", '\0').data(), 0755);
  Service service{.folder = words[1], .patience = std::chrono::seconds(count == 4 ? atoi(words[3]) : 25)};
  auto app =
      routes(put<"/files/{name}">([&](Exchange& exchange, std::string_view name) { upload(service, exchange, name); }),
             get<"/files/{path...}">(FileTree{words[1], {.cached_files = 0}}),
             del<"/files/{name}">([&](Exchange& exchange, std::string_view name) { remove(service, exchange, name); }),
             get<"/changes">([&](Exchange& exchange) { poll(service, exchange); }));
  return serve({.name = "service",
                .listen = words[2],
                .server = {.max_active = 64, .limits = {.max_body = kMostBytes}, .access_log = true},
                .drain_timeout = 2s},
               app);
}
