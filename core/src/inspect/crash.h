#pragma once

#include <coir/crash.h>

namespace coir {

// tell_crash calls the function of on_crash, if no other crash was told yet. Async-signal-safe.
void tell_crash(const Crash& crash) noexcept;

}  // namespace coir
