#pragma once

#include <coir/http/fastcgi.h>

#include <cstdint>
#include <optional>

#include "fastcgi/scripts.h"
#include "proxy/gateway_metrics.h"
#include "proxy/upstreams/upstreams.h"

namespace coir::http {

// FastCgiState is a FastCgi. Its part of /metrics is in fastcgi_metrics.cpp.
class FastCgiState final : public GatewayPart {
 public:
  FastCgiState(std::span<const UpstreamServer> servers, const FastCgiOptions& options) noexcept;

  // serve finds the script of an exchange. False: there is none.
  bool serve(Exchange& exchange) noexcept;
  std::string_view problem() const noexcept { return {problem_, problem_bytes_}; }
  void each_group(const Callable<void(const GatewayGroup& group)>& visit) noexcept override;
  std::size_t figures() const noexcept override;
  GatewayFigure figure(std::size_t number) const noexcept override;

  const FastCgiOptions options;
  FastCgiCounters counters;
  std::optional<Upstreams> upstreams;

 private:
  void note(std::string_view word, std::string_view what) noexcept;
  bool serve_suffix(Exchange& exchange) noexcept;
  bool serve_front(Exchange& exchange) noexcept;
  bool serve_prefix(Exchange& exchange) noexcept;
  bool forward(Exchange& exchange, const FastCgiScript& script) noexcept;

  std::uint8_t problem_bytes_ = 0;
  char problem_[160];
};

// forward_to_fastcgi has the application of `group` answer for a script, and returns when the response has been passed on.
void forward_to_fastcgi(Exchange& exchange, UpstreamGroup& group, const FastCgiScript& script,
                        const FastCgiOptions& options, FastCgiCounters* counters = nullptr) noexcept;

}  // namespace coir::http
