#pragma once

#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/descriptor_stream.h>
#include <coir/detail/intrusive_list.h>
#include <coir/event.h>
#include <coir/mutex.h>
#include <coir/process.h>

#include <cstdint>
#include <expected>
#include <string_view>

#include "mcp/client/client_state.h"
#include "mcp/client/wire/line_reader.h"

namespace coir::mcp::detail {

// Pending is a request that waits for a program's answer, in the frame of the fiber that asks. Messages for it are queued
// until that fiber takes them.
struct Pending {
  static constexpr std::uint32_t kMostQueued = 64;

  std::uint64_t id = 0;
  bool to_listen = false;   // for changes: a legacy program's notifications that belong to nobody come here
  bool wants_told = false;  // of what comes before the answer

  Event ready;
  coir::detail::IntrusiveQueue<ReplyBlock> queue;  // this and what follows: under Program::lock_
  std::uint32_t queued = 0;
  Error ended;  // no more will come; code 0: it may
  bool told_of_end = false;
  bool is_answered = false;  // an answer is in the queue, or was
  Pending* next = nullptr;
  Pending* previous = nullptr;
};

// Program is an MCP server that runs as a child: messages are lines on its standard input and output, its standard error
// is logged. One fiber runs it, others send and wait.
class Program {
 public:
  explicit Program(McpClientState& state) noexcept : state_(state), lines_(state.options.max_message) {}

  // run is McpClient::run. program_run.cpp has it and what it calls.
  std::expected<void, Error> run() noexcept;
  void close() noexcept;

  // await_start waits until the program runs and returns how often it was started. Errors: closed (it is not run, or the
  // client is closed), timed_out, cancelled; where it cannot start, why.
  std::expected<std::uint32_t, Error> await_start() noexcept;

  // write sends one message as a line. A caller that is cancelled in the middle of one ends the program, as nothing could
  // be said to it any more. Errors: closed (it has died, or another instance runs), timed_out, cancelled.
  std::expected<void, Error> write(std::string_view message, std::uint32_t instance) noexcept;

  // add has what comes for `pending` queued; remove ends that. False: `instance` has died.
  bool add(Pending& pending, std::uint32_t instance) noexcept;
  void remove(Pending& pending) noexcept;
  // take_queued waits for the next message. Errors: what `pending` ended with, timed_out, cancelled.
  std::expected<Reply, Error> take_queued(Pending& pending) noexcept;

 private:
  void live() noexcept;
  std::expected<void, Error> start() noexcept;
  void follow() noexcept;
  void end() noexcept;
  // Taken is what a turn of reading has left.
  enum class Taken : std::uint8_t { all, part, ended };
  Taken read_messages() noexcept;
  Taken read_complaints() noexcept;
  static Taken why_not(Error error) noexcept;
  void log(std::string_view line) noexcept;

  void dispatch(std::string_view line) noexcept;
  void dispatch_one(std::string_view text) noexcept;
  bool deliver(Reply& message) noexcept;
  bool deliver_to_listeners(const Reply& message) noexcept;
  Pending* receiver(const ReplyBlock& message) noexcept;
  void queue(Pending& pending, Reply& message) noexcept;
  void refuse(const ReplyBlock& request) noexcept;
  void fail_all(Error error) noexcept;
  // A call that has found, under lock_, somebody to wake counts itself in waking_ and wakes without the lock, by wake or
  // cancel. Those that can be found so, and have taken themselves out, await that before they go.
  void wake(Pending& pending) noexcept;
  void cancel(CancelScope& scope, const char* reason) noexcept;
  void await_wakers() noexcept;

  static constexpr std::size_t kMostComplaint = 4096 - 1;

  McpClientState& state_;
  Process process_;
  LineReader lines_;
  LineReader complaints_{kMostComplaint};
  Deadline log_again_ = Deadline::now();  // when more lines may be logged
  std::uint32_t logged_ = 0;

  Mutex writing_;
  DescriptorStream input_;  // under writing_, but for its closing

  Spinlock lock_;                                 // of what follows, up to the empty line
  coir::detail::IntrusiveList<Pending> pending_;  // the oldest first
  std::uint32_t waking_ = 0;
  CancelScope* living_ = nullptr;  // that of the child
  Error not_started_;              // why the latest child could not start; code 0: it did, or none was tried
  bool runs_ = false;
  std::uint32_t instance_ = 0;  // how many have started

  CancellationSource closing_;
  Event news_;                   // a child runs, or could not start, or the client is closed
  bool fruitful_ = false;        // the child has said something that was asked
  std::uint32_t fruitless_ = 0;  // children since the last that has
};

}  // namespace coir::mcp::detail
