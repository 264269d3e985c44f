#pragma once

#include <coir/config.h>

#include "options/options.h"

// The requests that FastCGI applications answer: --fastcgi. A build without it (-DCOIR_FASTCGI=OFF, or -DCOIR_PROXY=OFF),
// or without fibers, refuses the option.
#define COIRD_SCRIPTS (COIR_FASTCGI && !COIR_NO_ASYNC)

#if COIRD_SCRIPTS
[[nodiscard]] bool take_fastcgi(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_fastcgi = nullptr;
#endif

#if COIRD_SCRIPTS
#include <coir/http/fastcgi.h>
#include <coir/http/files.h>
#include <coir/http/gateway_metrics.h>
#include <coir/http/upstreams.h>
#include <limits.h>

#include <optional>
#include <string_view>

// Scripts is the paths that applications answer.
class Scripts {
 public:
  // open prepares what the options name; `files` is the tree of --root, or null. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options, coir::http::FileTree* files) noexcept;

  // watch, groups and group are as Gateway's.
  void watch() noexcept;
  std::size_t groups() const noexcept { return count_; }
  coir::http::GatewayGroup group(std::size_t index) const noexcept;

  // serve answers a request that is for an application. False: it is not.
  bool serve(coir::http::Exchange& exchange) noexcept;

 private:
  struct Application {
    std::string_view where = {};
    std::string_view addresses = {};
    std::string_view front = {};  // answers what names no file
    bool buffers = true;
    std::optional<coir::http::Upstreams> upstreams = {};
  };

  bool serve_suffix(coir::http::Exchange& exchange, Application& application) noexcept;
  bool serve_front(coir::http::Exchange& exchange, Application& application) noexcept;
  bool serve_prefix(coir::http::Exchange& exchange, Application& application) noexcept;
  void forward(coir::http::Exchange& exchange, Application& application,
               const coir::http::FastCgiScript& script) noexcept;
  static void complain_of(void* application, std::string_view line) noexcept;

  Application applications_[Options::kMaxApplications];
  std::size_t count_ = 0;
  coir::http::FileTree* files_ = nullptr;
  std::uint64_t most_spooled_ = 0;
  char root_[PATH_MAX] = {};
};
#endif
