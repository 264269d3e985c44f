#pragma once

#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/group.h>
#include <coir/mcp/client.h>
#include <coir/mutex.h>
#include <coir/resting_wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "mcp/client/client_state.h"
#include "mcp/client/sent_request.h"

namespace coir::mcp::detail {

struct FanOut;

// FanOutPart is a branch under way. A fiber sends its request and ends; while a modern server is silent the part is this
// record and the connection, asleep on its socket. Another fiber takes the answer.
struct FanOutPart : RestingWait {
  enum class State : std::uint8_t { runs, rests, woken, ended };

  FanOut* whole = nullptr;
  Branch* branch = nullptr;
  std::int64_t begun_ns = 0;
  Deadline deadline;
  SentRequest sent;
  std::uint64_t id = 0;
  std::uint32_t generation = 0;
  State state = State::runs;  // guarded by FanOut::lock

  McpClientState& client() const noexcept { return *branch->client->state_; }
  // rests_until is of a part that rests: the server's time to answer may be shorter than the branch's.
  Deadline rests_until() const noexcept { return std::min(deadline, sent.answer_by()); }
  void run() noexcept;
  bool send(CancelScope& scope) noexcept;
  bool rest() noexcept;
  std::expected<void, Error> sleep() noexcept;
  bool has_news() const noexcept;
  void take_answer() noexcept;
  void hear(CancelScope& scope) noexcept;
  void call() noexcept;
};

// FanOut is what the branches have in common, in one block of account::mcp with the parts behind it: a caller that waits
// holds one page of stack. Its owner, the fiber that called, gives a fiber to each part that was woken or whose time is over.
// fan_out.cpp
struct FanOut {
  // make returns null where there is no memory.
  static FanOut* make(std::span<Branch> branches, const FanOutOptions& options) noexcept;
  static void destroy(FanOut* whole) noexcept;

  const FanOutOptions& options;
  Group group;  // of the parts' fibers
  const std::span<FanOutPart> parts;
  Mutex telling;
  Event news;  // a part was woken, rests, or has ended
  Spinlock lock;
  Atomic<bool> is_won = false;
  bool is_over = false;  // guarded by lock: none may rest any more
  Atomic<std::size_t> answered = 0;
  Atomic<std::size_t> open = 0;     // parts that have not ended
  Atomic<std::uint32_t> wakes = 0;  // that have not returned

  void start() noexcept;
  std::expected<void, Error> attend() noexcept;
  std::expected<std::size_t, Error> finish(std::expected<void, Error> attended) noexcept;
  void end(FanOutPart& part) noexcept;
  void tell(Branch& branch) noexcept;
  Deadline next_deadline() noexcept;
  void take_up() noexcept;
  void stop(Error why) noexcept;
  static void woken(RestingWait& resting) noexcept;

 private:
  FanOut(const FanOutOptions& given, std::span<FanOutPart> each) noexcept
      : options(given), group({.limit = given.limit}), parts(each) {}
};

}  // namespace coir::mcp::detail
