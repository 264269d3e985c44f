#include "fiber/describe.h"

#include <bit>

#include "base/line.h"

namespace coir {

const WaitWords kWaitWords[] = {
    {"", "", nullptr},
    {"readable", " waits for fd ", " to be readable"},
    {"writable", " waits for fd ", " to be writable"},
    {"urgent", " waits for fd ", " to have urgent news"},
    {"sleep", " sleeps", nullptr},
    {"join", " joins fiber ", ""},
    {"signal", " waits for a signal", nullptr},
    {"nursery", " waits for ", " children"},
    {"admission", " waits to spawn, ", " children are the limit"},
    {"mutex", " waits for a mutex", nullptr},
    {"condition", " waits for a condition", nullptr},
    {"semaphore", " waits for ", " of a semaphore"},
    {"event", " waits for an event", nullptr},
    {"wait group", " waits for a wait group", nullptr},
    {"once", " waits for what is done once", nullptr},
    {"shared lock", " waits to read under a lock", nullptr},
    {"exclusive lock", " waits to write under a lock", nullptr},
    {"receive", " waits to receive", nullptr},
    {"send", " waits to send", nullptr},
    {"select", " waits for one of ", " cases"},
    {"job", " waits for a job", nullptr},
    {"backlog", " waits for room in a pool's backlog", nullptr},
    {"blocking", " waits for a blocking call", nullptr},
};
static_assert(sizeof kWaitWords / sizeof *kWaitWords == static_cast<std::size_t>(WaitKind::blocking) + 1);

namespace {

void describe_wait(const FiberControl& fiber, Line& line) noexcept {
  const auto object = static_cast<std::uint64_t>(fiber.wait_object.load(std::memory_order_relaxed));
  const WaitKind kind = fiber.wait_kind.load(std::memory_order_relaxed);
  const WaitWords& words = kWaitWords[static_cast<std::size_t>(kind)];
  line.text(words.before);
  if (words.after != nullptr) line.number(object).text(words.after);
  if (kind == WaitKind::sleep && object == INT64_MAX) line.text(" for ever");
  if (kind == WaitKind::mutex && object != 0) line.text(" that fiber ").number(object).text(" holds");
}

const char* state_name(FiberControl::State state) noexcept {
  constexpr const char* kNames[] = {"free", "runnable", "running", "parked", "ended", "failed, not awaited"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace

const char* wait_name(WaitKind kind) noexcept {
  return kWaitWords[static_cast<std::size_t>(kind)].name;
}

void write_name(const detail::FiberName& fiber, Line& line) noexcept {
  line.text("fiber ").number(fiber.id).text(" \"").text(fiber.name).text("\", spawned at ").place(fiber.where);
}

[[gnu::noinline]] void write_description(const FiberControl& fiber, int fd) noexcept {
  Line line;
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  line.text("coir:   fiber ").number(fiber.id.load(std::memory_order_relaxed)).text(" \"");
  line.text(fiber.name.load(std::memory_order_relaxed)).text("\" ");
  const FiberControl::State state = fiber.state.load(std::memory_order_relaxed);
  line.text(state_name(state));
  if (state == FiberControl::State::failed) {
    const std::int64_t error = fiber.wait_object.load(std::memory_order_relaxed);
    line.text(": ").text(describe(std::bit_cast<Error>(error)));
  } else {
    describe_wait(fiber, line);
  }
  line.text("; spawned at ").place(where).text("\n").send(fd);
}

}  // namespace coir
