#pragma once

#include <coir/config.h>
#include <coir/http/exchange.h>
#include <coir/http/metrics.h>

#include <span>

#include "../options/options.h"
#include "starts.h"

#if !COIR_NO_ASYNC
#include <coir/event.h>
#include <coir/fiber.h>
#endif

// SafeMode tells, before anything is opened, whether this run is in safe mode: management only, at the addresses of the
// last good configuration, with default limits. Nothing that is wrong with the folder of --state keeps coird from
// running; without --state only --safe-file counts.
class SafeMode {
 public:
  // begin counts this start, and waits where the last runs were short; `good` tells that the options are in order. False:
  // SIGTERM or SIGINT has ended the wait.
  [[nodiscard]] bool begin(const Options& options, bool good, std::span<char*> arguments) noexcept;

  bool on() const noexcept { return reason_ != Reason::none; }

  // read_good reads the command line with the copy of the last configuration that has served. False: there is none that can
  // be used.
  [[nodiscard]] bool read_good(std::span<char*> arguments, Options& good) const noexcept;

  // apply makes `options` those of safe mode, with the addresses of `good`, which may be null and outlives them. A line
  // says so, why, and how to leave.
  void apply(Options& options, const Options* good) noexcept;

  // serving begins the minute after which the configuration is a good one and the run no short one; stopped ends it, and makes
  // a run that was asked to stop no short one. In the run.
  void serving() noexcept;
  void stopped() noexcept;

  // page writes what is the matter, and how to leave.
  std::string_view page(std::span<char> room) const noexcept;

 private:
  enum class Reason : unsigned char { none, loop, asked, file };

  std::string_view why(std::span<char> room) const noexcept;
  const char* how() const noexcept;
  void count_runs(bool failed) noexcept;
  void keep(const Starts& starts) const noexcept;
  void keep_good() const noexcept;
  void forget() const noexcept;

  const Options* options_ = nullptr;
  Starts now_;
  std::uint64_t runs_ = 0;
  Reason reason_ = Reason::none;
  bool counts_ = false;       // the file of starts is this run's
  std::uint32_t config_ = 0;  // a sum of the file of --config
#if !COIR_NO_ASYNC
  coir::Event stops_;
  coir::Fiber minute_;
#endif
};
