#include "asking.h"

#include <coir/config.h>
#include <coir/format.h>
#include <coir/net/address.h>
#include <errno.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "fetch_options.h"

namespace {

constexpr std::string_view kHead = "coird ";
constexpr std::string_view kGreeting = "coird 1 ";

// Seconds that coird has to end once requests have ended, or are cut off.
constexpr int kEndSeconds = 10;

// The answer, with its first line.
char g_answer[32 * 1024];

int timeout_of(const ControlOptions& options) noexcept {
  return options.timeout_s != 0 ? options.timeout_s : options.verb == "reload" ? 60 : 5;
}

}  // namespace

int Asking::fail(int status, std::string_view why) const noexcept {
  say_error(options_.socket, why);
  return status;
}

int Asking::connect() noexcept {
  char name[256], why[160];
  const auto at = coir::Address::parse(coir::format(name, "unix:", options_.socket));
  if (!at) return fail(kUnknown, coir::format(why, at.error(), ": name its --socket"));
  deadline_ = coir::Deadline::after(std::chrono::seconds(timeout_of(options_)));
  auto stream = coir::TcpStream::connect(*at, deadline_);
  if (stream) {
    stream_ = std::move(*stream);
    return kHasDone;
  }
  switch (stream.error().sys) {
    case ENOENT:
      return fail(kNotRunning, "coird does not run, or without --control PATH: start it, or name its --socket");
    case ECONNREFUSED:
      return fail(kNotRunning, "coird has ended and left its socket: start it (coirctl crashes tells why it ended)");
    case EACCES:
    case EPERM:
      return fail(kUnknown,
                  "not permitted: run coirctl as root, as coird's own user, or in the group of --control-readers");
    case EAGAIN:
      return fail(kUnknown, "coird hangs, or others ask: its queue is full; try again, or restart it");
    default:
      return fail(kUnknown, coir::format(why, stream.error(), ": name its --socket"));
  }
}

int Asking::begin(std::string_view request) noexcept {
  if (const int status = connect(); status != kHasDone) return status;
  char line[80], why[256];
  // A refusal may be there before the request is.
  static_cast<void>(stream_.write(coir::format(line, "1 ", request, "\n"), deadline_));
  taken_ = size_ = 0;
  std::size_t end = 0;
  for (bool ended = false;; end = size_) {
    if (const int status = read_more(deadline_, ended); status != kHasDone) return status;
    if (ended) return fail(kUnknown, "coird has closed the connection without an answer; try again");
    end = static_cast<std::size_t>(std::find(g_answer + end, g_answer + size_, '\n') - g_answer);
    if (end != size_) break;
  }
  taken_ = end + 1;
  const std::string_view head(g_answer, end);
  if (!head.starts_with(kGreeting)) {
    const std::string_view other = head.starts_with(kHead) ? head.substr(0, 64) : "no coird";
    return fail(kUnknown, coir::format(why, "another version answers there (", coir::escaped(other),
                                       "): take coirctl " COIR_VERSION "'s own coird"));
  }
  std::string_view result = head.substr(kGreeting.size());
  result.remove_prefix(std::min(result.find(' ') + 1, result.size()));
  if (result == "ok") return kHasDone;
  if (result.starts_with("error ")) result.remove_prefix(6);
  return fail(result.starts_with("not permitted") ? kUnknown : kRefused, coir::format(why, coir::escaped(result)));
}

int Asking::next(std::string_view& part) noexcept {
  bool ended = false;
  if (taken_ == size_) {
    taken_ = size_ = 0;
    deadline_ = coir::Deadline::after(std::chrono::seconds(timeout_of(options_)));
    if (const int status = read_more(deadline_, ended); status != kHasDone) return status;
  }
  part = {g_answer + taken_, size_ - taken_};
  taken_ = size_;
  return kHasDone;
}

int Asking::rest(std::string_view& text) noexcept {
  for (bool ended = false; !ended && size_ < sizeof g_answer;) {
    if (const int status = read_more(deadline_, ended); status != kHasDone) return status;
  }
  text = {g_answer + taken_, size_ - taken_};
  return kHasDone;
}

int Asking::ask(std::string_view request, std::string_view& text) noexcept {
  const int status = begin(request);
  return status != kHasDone ? status : rest(text);
}

int Asking::await_end() noexcept {
  constexpr std::string_view kDrainTime = "drain_timeout_ms: ";
  std::int64_t seconds = options_.timeout_s != 0 ? options_.timeout_s : 30 + kEndSeconds;
  const std::int64_t asked_ns = coir::monotonic_ns();
  if (options_.timeout_s == 0) deadline_ = coir::Deadline::at_ns(asked_ns + seconds * 1'000'000'000);
  while (size_ < sizeof g_answer) {
    const std::string_view text(g_answer + taken_, size_ - taken_);
    std::int64_t drain_ms = 0;
    if (options_.timeout_s == 0 && text.starts_with(kDrainTime) && text.ends_with('\n') &&
        std::from_chars(text.data() + kDrainTime.size(), text.data() + text.size(), drain_ms).ec == std::errc()) {
      seconds = drain_ms / 1000 + kEndSeconds;
      deadline_ = coir::Deadline::at_ns(asked_ns + seconds * 1'000'000'000);
    }
    const auto size = stream_.read(std::span(g_answer).subspan(size_), deadline_);
    if (!size && size.error() != coir::ErrorCode::timed_out) return kHasDone;
    if (!size) break;
    size_ += *size;
  }
  char why[120];
  return fail(kUnknown, coir::format(why, "coird hangs while it ends: not done in ", seconds, " s; kill it, or wait"));
}

// read_more waits for more of the answer.
int Asking::read_more(coir::Deadline deadline, bool& ended) noexcept {
  char why[160];
  const auto size = stream_.read(std::span(g_answer).subspan(size_), deadline);
  if (size) {
    size_ += *size;
  } else if (size.error() == coir::ErrorCode::end_of_stream ||
             (size.error() == coir::ErrorCode::closed && taken_ != 0)) {
    ended = true;
  } else if (size.error() == coir::ErrorCode::timed_out) {
    return fail(kUnknown,
                coir::format(why, "coird hangs: no answer in ", timeout_of(options_), " s; try again, or restart it"));
  } else {
    return fail(kUnknown, coir::format(why, "the connection broke off (", size.error(), "); try again"));
  }
  return kHasDone;
}
