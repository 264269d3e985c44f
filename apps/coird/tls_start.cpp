#include "tls_start.h"

#if COIR_TLS

#include <coir/net/randomness.h>
#include <coir/program.h>
#include <coir/stack_size.h>

#include <utility>

#include "complaint.h"
#include "state.h"

using coir::operator""_KiB;

namespace {
constexpr const char* kSeeTls = "coird --help explains --cert, --key and --state";
}  // namespace

int TlsStart::prepare(const Options& options) noexcept {
  if (!options.any_tls()) return 0;
  if (!options.check) recall_state(options.state);
  tell_clock(options.state);
  // coird's own certificate is made when it is needed, not to be checked.
  const bool own = options.certificate_count == 0;
  if (options.check && own) return 0;
  if (!files_.emplace().read(options, kSeeTls)) return 2;
  slot_.emplace();
  const bool ready = coir::randomness_ready();
  waits_ = coir::kFibers && !ready && !options.check && !(own && options.user != nullptr);
  if (waits_) {
    say({"waiting for the kernel's random numbers: until then nothing is served with TLS"});
    return 0;
  }
  if (!wait_for_randomness()) return 1;
  return make(options) ? 0 : 2;
}

bool TlsStart::make(const Options& options) noexcept {
  coir::TlsContext context = files_->make(options, true, kSeeTls);
  if (context) first(std::move(context), options);
  return bool(slot_->current());
}

void TlsStart::first(coir::TlsContext context, const Options& options) noexcept {
  files_.reset();
  if (!options.check) keep_state(options.state);
  slot_->replace(std::move(context));
}

#if COIR_NO_ASYNC

void TlsStart::start(const Options&) noexcept {}
void TlsStart::stop() noexcept {}

coir::TlsContext TlsStart::load_again(const Options& options, const char* cure) noexcept {
  return load_credentials(options, false, cure);
}

void TlsStart::use(coir::TlsContext context, const Options&) noexcept {
  slot_->replace(std::move(context));
}

#else

namespace {
constexpr const char* kServed = "the kernel has random numbers: TLS is served";
}  // namespace

void TlsStart::start(const Options& options) noexcept {
  if (!waits_) return;
  fiber_ = coir::spawn({.name = "tls start", .stack = 32_KiB}, [this, &options] {
    if (!coir::await_randomness()) return;
    const auto turn = turn_.lock();
    // SIGHUP may have brought one.
    if (!turn || slot_->current()) return;
    if (make(options)) {
      say({kServed});
    } else {
      complain("correct it, then send SIGHUP", {"nothing is served with TLS"});
    }
  });
  if (!fiber_.started()) complain("restart coird", {"nothing is served with TLS: ", fiber_.error()});
}

void TlsStart::stop() noexcept {
  if (!fiber_.started()) return;
  static_cast<void>(fiber_.cancel());
  static_cast<void>(fiber_.join());
}

coir::TlsContext TlsStart::load_again(const Options& options, const char* cure) noexcept {
  if (!coir::randomness_ready()) return complain(cure, {"the kernel has no random numbers yet"}), coir::TlsContext();
  const auto turn = turn_.lock();
  // The first one may have to be made.
  return turn ? load_credentials(options, !slot_->current(), cure) : coir::TlsContext();
}

void TlsStart::use(coir::TlsContext context, const Options& options) noexcept {
  const auto turn = turn_.lock();
  if (!turn || slot_->current()) return slot_->replace(std::move(context));
  first(std::move(context), options);
  say({kServed});
}

#endif

#endif
