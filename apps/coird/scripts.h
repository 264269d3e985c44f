#pragma once

#include <coir/config.h>

#include <string_view>

#include "options/options.h"

// The requests that FastCGI applications answer: --fastcgi. A build without it (-DCOIR_FASTCGI=OFF, or -DCOIR_PROXY=OFF),
// or without fibers, refuses the option.
#define COIRD_SCRIPTS (COIR_FASTCGI && !COIR_NO_ASYNC)

#if COIRD_SCRIPTS
[[nodiscard]] bool take_fastcgi(const Setting& setting, Options& options) noexcept;
// is_application_key tells whether a word behind the addresses may have that key.
bool is_application_key(std::string_view key) noexcept;
#else
inline constexpr Take take_fastcgi = nullptr;
#endif

#if COIRD_SCRIPTS
#include <coir/http/fastcgi.h>
#include <coir/http/files.h>
#include <limits.h>

#include <optional>
#include <span>

// Scripts is the paths that applications answer.
class Scripts {
 public:
  // open prepares what the options name; `files` is the tree of --root, or null. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options, coir::http::FileTree* files) noexcept;

  // watch is as Gateway's.
  void watch() noexcept;
  // Each application, in the order of the options.
  std::span<const std::optional<coir::http::FastCgi>> applications() const noexcept { return {applications_, count_}; }

  // serve answers a request that is for an application. False: it is not.
  bool serve(coir::http::Exchange& exchange) noexcept;

 private:
  std::optional<coir::http::FastCgi> applications_[Options::kMaxApplications];
  std::size_t count_ = 0;
  char root_[PATH_MAX] = {};
};
#endif
