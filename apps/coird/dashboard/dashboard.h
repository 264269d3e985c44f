#pragma once

#include <coir/config.h>

#include "../options/options.h"

// --dashboard shows the state of coird on a page. A build without it (-DCOIR_DASHBOARD=OFF) refuses the option. Without fibers,
// or without streams (-DCOIR_STREAMS=OFF), the page is not live: it is read again by hand.
#define COIRD_LIVE (COIR_DASHBOARD && COIR_STREAMS && !COIR_NO_ASYNC)

#if COIR_DASHBOARD
[[nodiscard]] bool take_dashboard(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_dashboard = nullptr;
#endif

#if COIR_DASHBOARD
#include <coir/http/exchange.h>
#include <coir/http/token_login.h>

#include <optional>
#include <string_view>

#include "figures.h"
#include "past_crashes.h"

#if !COIR_NO_ASYNC
#include <coir/mutex.h>
#endif
#if COIRD_LIVE
#include <coir/atomic.h>
#include <coir/event.h>
#include <coir/events.h>
#include <coir/fiber.h>
#endif

// Dashboard is what answers at the path of --dashboard and below it: the page, its style and script, the login, and one
// stream of events, each the state of a second as JSON. While nobody follows the stream nothing is computed.
class Dashboard {
 public:
  Dashboard() noexcept = default;
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;
  ~Dashboard();

  // open prepares what the options name, before the run. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options, Daemon& daemon) noexcept;

  // start has the stream told of each second, and stop ends that. From a fiber of the run.
  void start() noexcept;
  void stop() noexcept;

  // owns tells whether a path is the dashboard's; serve answers it.
  bool owns(std::string_view path) const noexcept;
  void serve(coir::http::Exchange& exchange) noexcept;

 private:
  void serve_page(coir::http::Exchange& exchange) noexcept;
  void serve_login(coir::http::Exchange& exchange) noexcept;
  void log_out() noexcept;
  void go_to_page(coir::http::Exchange& exchange) noexcept;
  void serve_events(coir::http::Exchange& exchange) noexcept;
  void read_figures(FigureTexts& texts) noexcept;

  std::string_view path_;
  char token_[coir::http::TokenLogin::kMostToken] = {};
  std::optional<coir::http::TokenLogin> login_;
  std::optional<Figures> figures_;
  PastCrashes crashes_;
#if !COIR_NO_ASYNC
  coir::Mutex turn_;  // of the figures
#endif
#if COIRD_LIVE
  void run() noexcept;
  bool publish() noexcept;

  std::optional<coir::http::EventHub> events_;
  coir::Atomic<std::uint32_t> sign_outs_ = 0;
  coir::Event followed_;
  coir::Fiber fiber_;
  std::size_t told_bytes_ = 0;  // of the log that was published last
  std::uint64_t published_ = 0;
#endif
};
#endif
