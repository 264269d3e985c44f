#pragma once

#include <coir/config.h>

#include "options/options.h"

#if COIR_TLS
#include <coir/tls.h>

#include <optional>

#include "credentials.h"

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/mutex.h>
#endif

// TlsStart makes the context of the listeners with TLS. A key and a handshake need random numbers: on a board whose
// kernel has none yet the context is made once it has them, and whatever needs no TLS is served meanwhile. The start
// waits for them in a build without fibers, and where coird's own certificate could not be read or kept later, as
// another user.
class TlsStart {
 public:
  TlsStart() noexcept = default;
  TlsStart(const TlsStart&) = delete;
  TlsStart& operator=(const TlsStart&) = delete;

  // prepare reads the files that the options name, before coird gives up its privileges. Returns 0, or the exit status: one line
  // has said what is wrong.
  [[nodiscard]] int prepare(const Options& options) noexcept;

  // start waits for the random numbers, if prepare could not make the context; stop ends that. From a fiber of the run.
  void start(const Options& options) noexcept;
  void stop() noexcept;

  // slot is the context of the listeners with TLS; null: there is none.
  coir::TlsContextSlot* slot() noexcept { return slot_ ? &*slot_ : nullptr; }

  // load_again reads the files for SIGHUP. Null: one line has said why not. use has new handshakes take what it has returned.
  // From a fiber.
  coir::TlsContext load_again(const Options& options, const char* cure) noexcept;
  void use(coir::TlsContext context, const Options& options) noexcept;

 private:
  bool make(const Options& options) noexcept;
  void first(coir::TlsContext context, const Options& options) noexcept;

  std::optional<coir::TlsContextSlot> slot_;
  std::optional<CredentialFiles> files_;  // until the context is made
  bool waits_ = false;
#if !COIR_NO_ASYNC
  coir::Mutex turn_;  // of making a context: coird's own certificate is in one place
  coir::Fiber fiber_;
#endif
};
#endif
