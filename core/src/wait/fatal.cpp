#include <coir/detail/fatal.h>
#include <coir/detail/fiber_name.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/line.h"
#include "fiber/describe.h"
#include "wait/park.h"

namespace coir::detail {

namespace {

[[noreturn]] void end(const char* what, const std::source_location* where) noexcept {
  Line line;
  line.text("coir: ").text(what).text(" (");
  if (const FiberControl* const self = running_fiber(); self != nullptr) {
    write_name(name_of(*self), line);
  } else {
    line.text(this_worker() != nullptr ? "a worker's own stack" : "a plain thread");
  }
  if (where != nullptr) line.text("; at ").place(*where);
  line.text(")\n").send(STDERR_FILENO);
  abort();
}

}  // namespace

void fatal(const char* what) noexcept {
  end(what, nullptr);
}

void fatal(const char* what, const std::source_location& where) noexcept {
  end(what, &where);
}

FiberName name_of_caller() noexcept {
  const FiberControl* const self = running_fiber();
  return self != nullptr ? name_of(*self) : FiberName{};
}

NameWhile::NameWhile(const char* name) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) return;
  before_ = self->name.load(std::memory_order_relaxed);
  self->name.store(name, std::memory_order_relaxed);
}

NameWhile::~NameWhile() {
  if (before_ != nullptr) running_fiber()->name.store(before_, std::memory_order_relaxed);
}

}  // namespace coir::detail
