#include "failure.h"

#include <coir/heap.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "base/line.h"

#if !COIR_NO_ASYNC
#include "wait/park.h"
#endif

// If libc++ would throw, the process ends with one line. Nothing here calls printf, which wants more stack than a
// small fiber has.

namespace coir {

namespace {

void name_fiber(Line& line) noexcept {
#if COIR_NO_ASYNC
  static_cast<void>(line);
#else
  const FiberControl* const fiber = running_fiber();
  if (fiber == nullptr) return;
  const std::source_location where = fiber->where.load(std::memory_order_relaxed);
  line.text("; fiber ").number(fiber->id.load(std::memory_order_relaxed)).text(" \"");
  line.text(fiber->name.load(std::memory_order_relaxed)).text("\", spawned at ");
  line.text(where.file_name()).text(":").number(where.line());
#endif
}

[[noreturn]] void end_with(Line& line) noexcept {
  name_fiber(line);
  line.text("\n").send(STDERR_FILENO);
  abort();
}

void name_account(Line& line, const Account& account) noexcept {
  line.text("; ").text(account.name()).text(" ").number(account.used());
  if (account.ceiling() != SIZE_MAX) line.text(" of ").number(account.ceiling());
}

}  // namespace

void fail_allocation(const char* what, std::size_t bytes) noexcept {
  Line line;
  line.text("coir: no memory: ").number(bytes).text(" ").text(what);
  name_account(line, account::heap);
  name_account(line, Ledger::total());
  end_with(line);
}

}  // namespace coir

void std::__throw_bad_alloc() {
  coir::Line line;
  line.text("coir: bad_alloc");
  coir::end_with(line);
}

void std::__throw_runtime_error(const char* message) {
  coir::Line line;
  line.text("coir: runtime_error: ").text(message);
  coir::end_with(line);
}

extern "C" void __cxa_pure_virtual() {
  coir::Line line;
  line.text("coir: a pure virtual function was called");
  coir::end_with(line);
}

extern "C" void __cxa_deleted_virtual() {
  coir::Line line;
  line.text("coir: a deleted virtual function was called");
  coir::end_with(line);
}
