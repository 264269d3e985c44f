#pragma once

#include <coir/inspect.h>
#include <coir/ledger.h>

#include <chrono>
#include <cstdint>

// The members by which accounts and fibers are described, to agents (coir::JsonWriter) and to coirctl (ControlAnswer).

template <class Out>
void add_members(Out& out, const coir::Account& account) noexcept {
  out.member("name", account.name()).member("used", account.used()).member("peak", account.high_water());
  if (account.ceiling() != SIZE_MAX) out.member("ceiling", account.ceiling());
  out.member("refusals", account.refusals());
}

template <class Out>
void add_members(Out& out, const coir::FiberInfo& fiber) noexcept {
  out.member("id", fiber.id).member("name", fiber.name).member("state", state_name(fiber.state));
  if (fiber.state == coir::FiberState::parked) {
    out.member("waits_for", fiber.waits_for);
    out.member("waited_ms", std::chrono::duration_cast<std::chrono::milliseconds>(fiber.waited).count());
  }
  out.member("stack_bytes", fiber.stack_bytes).member("stack_peak_bytes", fiber.stack_peak_bytes);
}
