// How a program is started, followed and started anew, as program.h declares it.
#include <coir/fiber.h>
#include <coir/net/log_line.h>
#include <coir/wait.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "mcp/client/program.h"

namespace coir::mcp::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kMostLogged = 20;  // lines of standard error in kLogSpan
constexpr std::chrono::seconds kLogSpan{10};
constexpr std::size_t kLoggedBytes = 200;  // of each
constexpr std::chrono::seconds kGrace{1};
constexpr int kTurn = 16;  // reads before others run
constexpr std::chrono::milliseconds kWithoutMemory{20};

std::string_view base_name(const char* path) noexcept {
  const std::string_view whole(path);
  const std::size_t slash = whole.rfind('/');
  return slash == whole.npos ? whole : whole.substr(slash + 1);
}

}  // namespace

void Program::fail_all(Error error) noexcept {
  for (;;) {
    Pending* each;
    {
      const Locked locked(lock_);
      each = pending_.front();
      while (each != nullptr && each->told_of_end) each = each->next;
      if (each == nullptr) return;
      if (each->ended.code == ErrorCode{}) each->ended = error;
      each->told_of_end = true;
      ++waking_;
    }
    wake(*each);
  }
}

std::expected<void, Error> Program::start() noexcept {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(Error::from_errno(errno));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  auto input = DescriptorStream::adopt(ends[0]);
  std::expected<Process, Error> process = std::unexpected(Error{ErrorCode::no_memory});
  if (input) {
    process = Process::start({.argv = state_.options.command,
                              .environment = state_.options.environment,
                              .directory = state_.options.directory,
                              .input = Input::file(ends[1]),
                              .out = Output::pipe(),
                              .err = Output::pipe()});
  } else {
    ::close(ends[0]);
  }
  ::close(ends[1]);
  if (!process) return std::unexpected(process.error());
  process_ = std::move(*process);
  const Shield shield(Deadline::never());
  auto held = writing_.lock();
  if (!held) return std::unexpected(held.error());
  input_ = std::move(*input);
  return {};
}

Program::Taken Program::why_not(Error error) noexcept {
  if (error == ErrorCode::timed_out) return Taken::all;
  if (error != ErrorCode::no_memory) return Taken::ended;
  // The output is read once there is a buffer for it.
  return sleep(kWithoutMemory) ? Taken::part : Taken::ended;
}

Program::Taken Program::read_messages() noexcept {
  for (int reads = 0; reads < kTurn; ++reads) {
    const auto filled = lines_.fill(process_.out());
    if (!filled) return why_not(filled.error());
    while (const auto line = lines_.next()) dispatch(*line);
    state_.counters.garbage.fetch_add(lines_.take_too_long(), std::memory_order_relaxed);
  }
  return Taken::part;
}

void Program::log(std::string_view line) noexcept {
  if (log_again_.passed()) {
    log_again_ = Deadline::after(kLogSpan);
    logged_ = 0;
  }
  if (++logged_ > kMostLogged) return;
  // No text of a program may move the cursor of a log's reader.
  char name[40], said[kLoggedBytes], room[sizeof name + sizeof said + 80];
  const std::string_view text = coir::format(
      room, "mcp: ", coir::format(name, escaped(base_name(state_.options.command.front()))), ": ",
      coir::format(said, escaped(line)), logged_ == kMostLogged ? " (more is left out for a while)\n" : "\n");
  static constinit LogSource programs("mcp-programs");  // each has a rate of its own
  log_line(programs, coir::LogLevel::info, text);
}

Program::Taken Program::read_complaints() noexcept {
  for (int reads = 0; reads < kTurn; ++reads) {
    const auto filled = complaints_.fill(process_.err());
    if (!filled) return why_not(filled.error());
    while (const auto line = complaints_.next()) {
      state_.counters.complaints.fetch_add(1, std::memory_order_relaxed);
      log(*line);
    }
    state_.counters.complaints.fetch_add(complaints_.take_too_long(), std::memory_order_relaxed);
  }
  return Taken::part;
}

// follow reads what the program says until it has closed its output, or the scope around ends. It waits only when nothing
// is left of either: an edge does not come again.
void Program::follow() noexcept {
  Taken complaints = Taken::part;
  for (;;) {
    const Taken messages = read_messages();
    if (messages == Taken::ended) return;
    if (complaints != Taken::ended) complaints = read_complaints();
    if (messages == Taken::part || complaints == Taken::part) {
      yield();
      if (!check_cancelled()) return;
      continue;
    }
    const Awaited both[] = {{process_.out()}, {complaints == Taken::ended ? -1 : process_.err()}};
    if (auto waited = wait_several(both); !waited) return;
  }
}

// end has the program end: its input is closed, then it is asked by a signal, then killed.
void Program::end() noexcept {
  {
    const Locked locked(lock_);
    runs_ = false;
    living_ = nullptr;
    if (!state_.closed.load(std::memory_order_relaxed)) news_.reset();
  }
  await_wakers();
  fail_all(ErrorCode::closed);
  std::uint32_t generation;
  {
    const Locked locked(state_.lock);
    generation = state_.session.generation;
  }
  forget(state_, generation);
  const Shield shield(Deadline::never());
  // A fiber that writes fails at once and gives the mutex back.
  ::shutdown(input_.fd(), SHUT_RDWR);
  if (auto ended = process_.wait(Deadline::after(kGrace)); !ended) static_cast<void>(process_.stop(kGrace));
  static_cast<void>(read_complaints());  // its last words
  if (auto held = writing_.lock()) input_.close();
  process_ = Process();
  lines_ = LineReader(state_.options.max_message);
  complaints_ = LineReader(kMostComplaint);
}

void Program::live() noexcept {
  CancelScope scope;
  fruitful_ = false;
  const auto started = start();
  {
    const Locked locked(lock_);
    not_started_ = started ? Error{} : started.error();
    if (started) {
      runs_ = true;
      ++instance_;
      living_ = &scope;
    }
  }
  news_.set();
  if (!started) return;
  state_.counters.starts.fetch_add(1, std::memory_order_relaxed);
  follow();
  end();
}

std::expected<void, Error> Program::run() noexcept {
  CancelScope scope;
  const CancellationWatch watch(closing_.token(), scope);
  std::expected<void, Error> outcome;
  while (!state_.closed.load(std::memory_order_acquire)) {
    live();
    fruitless_ = fruitful_ ? 0 : fruitless_ + 1;
    const auto pause = state_.options.pause * (std::int64_t{1} << std::min(fruitless_, 16u));
    outcome = sleep(std::min<std::chrono::milliseconds>(pause, state_.options.longest_pause));
    if (!outcome) break;
  }
  if (state_.closed.load(std::memory_order_relaxed)) return {};
  if (outcome) return {};
  return outcome;
}

void Program::close() noexcept {
  {
    const Locked behind_a_reset(lock_);
  }  // of one that has not seen `closed` yet
  news_.set();
  closing_.cancel("the client is closed");
}

}  // namespace coir::mcp::detail
