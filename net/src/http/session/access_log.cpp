#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/wire/date.h>
#include <coir/net/log_line.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/charged.h"
#include "http/connection/connection.h"
#include "http/connection/stream_log.h"
#include "http/session/engine.h"
#include "http/session/session.h"
#include "http/text/base64.h"
#include "http/text/characters.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

// The most that is written of each part that the client chooses. All of them, and the rest, fit a line.
constexpr std::size_t kLogLineBytes = 2048;
constexpr std::size_t kMostTarget = 1000;
constexpr std::size_t kMostReferer = 400;
constexpr std::size_t kMostAgent = 300;
constexpr std::size_t kMostId = 80;

// No rate: the log has each request.
constinit LogSource g_requests("access");

}  // namespace

// LogLine writes a line into memory, as far as that goes.
class LogLine {
 public:
  explicit LogLine(std::span<char> memory) noexcept : at_(memory.data()), end_(at_ + memory.size()) {}

  void add(std::string_view text) noexcept {
    const std::size_t size = std::min(text.size(), room());
    memcpy(at_, text.data(), size);
    at_ += size;
  }
  void add(std::uint64_t number, std::size_t digits = 1) noexcept {
    char text[20];
    const auto size = static_cast<std::size_t>(write_decimal(text, number) - text);
    for (std::size_t missing = size; missing < digits; ++missing) add("0");
    add({text, size});
  }
  // add_escaped writes what could forge a line, end its quotes or move the reader's cursor as \xHH. After `most` bytes
  // it ends in "...". `blanks` has blanks escaped too.
  void add_escaped(std::string_view text, std::size_t most, bool blanks = false) noexcept {
    constexpr std::size_t kEscape = 4;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (most < 3 + kEscape) return add("...");
      if (byte < (blanks ? '!' : ' ') || byte >= 0x7f || byte == '"' || byte == '\\') {
        constexpr char kDigits[] = "0123456789abcdef";
        const char escape[] = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
        add({escape, sizeof escape});
        most -= kEscape;
      } else {
        add({&c, 1});
        --most;
      }
    }
  }
  void add_field(std::string_view value, std::size_t most) noexcept {
    add(" \"");
    if (value.empty()) value = "-";
    add_escaped(value, most);
    add("\"");
  }
  const char* end() const noexcept { return at_; }

 private:
  std::size_t room() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  char* at_;
  char* end_;
};

namespace {

// add_host writes the address without its port, and one of IPv4 as such.
void add_host(LogLine& line, const std::expected<Address, Error>& peer) noexcept {
  if (!peer) return line.add("-");
  if (peer->family() == Address::Family::unix_path) return line.add("unix");
  char memory[Address::kMaxText];
  std::string_view text = peer->format(memory);
  text = text.substr(0, text.rfind(':'));
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped) && text.find('.') != text.npos) text.remove_prefix(kMapped.size());
  line.add(text);
}

// add_user writes the name that a client gave by the Basic scheme, whether it was admitted or not.
void add_user(LogLine& line, std::string_view authorization, std::span<char, 256> memory) noexcept {
  constexpr std::string_view kScheme = "basic ";
  constexpr std::size_t kMostUser = 64;
  std::string_view name;
  if (begins_ignoring_case(authorization, kScheme)) {
    if (const auto text = decode_base64(trim(after(authorization, kScheme.size())), memory)) {
      name = until(*text, ':');
      if (name.size() == text->size()) name = {};
    }
  }
  name.empty() ? line.add("-") : line.add_escaped(name, kMostUser, true);
  explicit_bzero(memory.data(), memory.size());
}

// add_time writes "[06/Nov/1994:08:49:37 +0000]".
void add_time(LogLine& line, std::int64_t unix_seconds) noexcept {
  char memory[kDateBytes];  // "Sun, 06 Nov 1994 08:49:37 GMT"
  format_date(unix_seconds, memory);
  const std::string_view date(memory, sizeof memory);
  line.add("[");
  line.add(date.substr(5, 2));
  line.add("/");
  line.add(date.substr(8, 3));
  line.add("/");
  line.add(date.substr(12, 4));
  line.add(":");
  line.add(date.substr(17, 8));
  line.add(" +0000]");
}

// add_seconds writes a time with its microseconds.
void add_seconds(LogLine& line, std::int64_t ns) noexcept {
  const auto micros = static_cast<std::uint64_t>(ns) / 1000;
  line.add(micros / 1'000'000);
  line.add(".");
  line.add(micros % 1'000'000, 6);
}

}  // namespace

void Session::count_end() noexcept {
  ended_ns_ = monotonic_ns();
  engine_.counters.durations.record(ended_ns_ - began_ns_);
}

void Session::told_end() noexcept {
  count_end();
  if (engine_.options.access_log) log_access();
}

// log_access writes the line. It does not wait for the reader of the log.
void Session::log_access() noexcept {
  LogLine line(std::span<char>(buffers->scratch).first(kLogLineBytes));
  compose(line, nullptr);
  log_line(g_requests, LogLevel::info, {buffers->scratch, line.end()});
}

void Session::told_stream() noexcept {
  count_end();
  if (!engine_.options.access_log) return;
  LogLine line(std::span<char>(buffers->scratch).first(kLogLineBytes));
  const char* gaps[2];
  compose(line, gaps);
  const std::string_view text(buffers->scratch, line.end());
  void* const memory =
      take_charged(account::streams, sizeof(StreamLog) + text.size() + StreamLog::kNumbers + StreamLog::kWhy);
  if (memory == nullptr) return log_access();
  StreamLog& log = *::new (memory) StreamLog{.began_ns = began_ns_,
                                             .sent = content_sent_,
                                             .delivered = kernel::delivered(connection_->stream.fd()),
                                             .size = static_cast<std::uint32_t>(text.size()),
                                             .sent_at = static_cast<std::uint16_t>(gaps[0] - text.data()),
                                             .took_at = static_cast<std::uint16_t>(gaps[1] - text.data()),
                                             .why = nullptr};
  memcpy(log.text(), text.data(), text.size());
  connection_->log = &log;
  connection_->logs = true;
}

void end_log(Connection& connection) noexcept {
  if (!connection.logs) return;
  StreamLog& log = *std::exchange(connection.log, nullptr);
  connection.tls = nullptr;
  connection.logs = false;
  const std::size_t bytes = log.bytes();
  const std::uint64_t delivered = kernel::delivered(connection.stream.fd());
  char numbers[StreamLog::kNumbers];
  LogLine line(numbers);
  line.add(log.sent + (delivered > log.delivered ? delivered - log.delivered : 0));
  const auto sent = static_cast<std::size_t>(line.end() - numbers);
  add_seconds(line, monotonic_ns() - log.began_ns);
  const auto both = static_cast<std::size_t>(line.end() - numbers);
  char* const text = log.text();
  memmove(text + log.took_at + both, text + log.took_at, log.size - log.took_at);
  memcpy(text + log.took_at + sent, numbers + sent, both - sent);
  memmove(text + log.sent_at + sent, text + log.sent_at, static_cast<std::size_t>(log.took_at - log.sent_at));
  memcpy(text + log.sent_at, numbers, sent);
  const std::size_t told = log.size + both;
  const std::string_view why =
      log.why != nullptr ? format({text + told, StreamLog::kWhy}, " why=", log.why) : std::string_view();
  log_line(g_requests, LogLevel::info, {text, told + why.size()});
  give_charged(account::streams, &log, bytes);
}

// compose writes a line of the combined format, with seconds and scheme behind it, and what has been noted. With `gaps`
// it leaves the numbers of the answer's end out and notes where they belong.
void Session::compose(LogLine& line, const char** gaps) noexcept {
  add_host(line, engine_.peer_of(*connection_));
  line.add(" - ");
  add_user(line, request_.header("Authorization"), std::span(buffers->scratch).subspan<kLogLineBytes, 256>());
  line.add(" ");
  add_time(line, now());
  if (request_.method_text.empty()) {
    line.add(" \"-\"");
  } else {
    line.add(" \"");
    line.add(request_.method_text.substr(0, 20));
    line.add(" ");
    line.add_escaped(request_.target, kMostTarget);
    line.add(" HTTP/1.");
    line.add(std::uint64_t{request_.minor});
    line.add("\"");
  }
  line.add(" ");
  line.add(std::uint64_t{status_});
  line.add(" ");
  gaps != nullptr ? static_cast<void>(gaps[0] = line.end()) : line.add(content_sent_);
  line.add_field(request_.header("Referer"), kMostReferer);
  line.add_field(request_.header("User-Agent"), kMostAgent);
  line.add(" ");
  gaps != nullptr ? static_cast<void>(gaps[1] = line.end()) : add_seconds(line, ended_ns_ - began_ns_);
  line.add(connection_->stream.secure() ? " https" : " http");
  if (log_why_ != nullptr) {
    line.add(" why=");
    line.add(log_why_);
  }
  if (!log_id_.empty()) {
    line.add(" id=");
    line.add_escaped(log_id_, kMostId);
  }
  line.add("\n");
}

}  // namespace coir::http
