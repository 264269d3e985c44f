#pragma once

#include "options.h"

#if COIRD_MCP
#include <coir/http/exchange.h>
#include <coir/mcp.h>

#include <optional>

#include "access.h"
#include "fetch_tool.h"
#include "mounts.h"
#include "tools.h"

// McpServing is what answers at the path of --mcp.
class McpServing {
 public:
  McpServing() noexcept = default;
  McpServing(const McpServing&) = delete;
  McpServing& operator=(const McpServing&) = delete;
  ~McpServing();

  // open prepares what the options name, before the run. False: one line has said why not.
  [[nodiscard]] bool open(const McpOptions& options, Daemon& daemon) noexcept;

  // start asks the servers that are mounted, and stop ends that. From a fiber of the run.
  void start() noexcept;
  void stop() noexcept;

  // owns tells whether a path is that of --mcp, and asks_token whether its requests are judged by a token of their own
  // instead of --auth. tells_issuer tells whether a path is that of the document which names the issuer of tokens.
  bool owns(std::string_view path) const noexcept { return path == path_; }
  bool asks_token() const noexcept { return access_.asks(); }
  bool tells_issuer(std::string_view path) const noexcept;
  void serve(coir::http::Exchange& exchange) noexcept { (*server_)(exchange); }
  void serve_metadata(coir::http::Exchange& exchange) noexcept { server_->serve_metadata(exchange); }

 private:
  std::string_view path_;
  McpAccess access_;
  Toolbox box_;
#if COIR_CLIENT
  std::optional<Fetcher> fetcher_;
#endif
#if COIRD_MOUNTS
  Mounts mounts_;
#endif
  std::optional<coir::mcp::McpServer> server_;
};
#endif
