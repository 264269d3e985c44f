#include "serving.h"

#if COIRD_MCP

#include <coir/net/log_line.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../complaint.h"
#include "../daemon.h"

namespace {

constexpr const char* kSeeMcp = "coird --help explains --mcp";

// write_audit is a line for what was asked for. A name is the client's text: it is quoted.
void write_audit(const coir::mcp::Audit& line) noexcept {
  constexpr std::size_t kMostOfName = 80;
  char text[kMostOfName * 6 + 160];
  coir::Formatter out(text);
  out.add("mcp: ", line.method.empty() ? std::string_view("a request") : line.method);
  if (!line.name.empty()) out.add(" ", coir::json_quoted(line.name.substr(0, kMostOfName)));
  if (!line.who.empty()) out.add(" by ", line.who);
  out.add(": ", line.outcome);
  if (line.code != 0) out.add(" (", line.code, ")");
  out.add(", ", line.took.count(), " ms");
  static constinit coir::LogSource calls("mcp");  // without a rate: each call is a line
  say(calls, coir::LogLevel::info, {out.text()});
}

}  // namespace

McpServing::~McpServing() {
  server_.reset();
}

bool McpServing::tells_issuer(std::string_view path) const noexcept {
  constexpr std::string_view kDocument = "/.well-known/oauth-protected-resource";
  if (!access_.by_issuer() || !path.starts_with(kDocument)) return false;
  path.remove_prefix(kDocument.size());
  return path.empty() || path == path_;
}

void McpServing::start() noexcept {
#if COIRD_MOUNTS
  mounts_.start();
#endif
}

void McpServing::stop() noexcept {
#if COIRD_MOUNTS
  mounts_.stop();
#endif
}

bool McpServing::open(const McpOptions& options, Daemon& daemon) noexcept {
  path_ = options.path;
  if (!access_.open(*daemon.options)) return false;
  box_.board = &daemon.board;
  box_.daemon = &daemon;
  utsname names = {};
  ::uname(&names);
  static_cast<void>(::gethostname(box_.host, sizeof box_.host - 1));
  static_cast<void>(coir::format(box_.kernel, names.sysname, " ", names.release, '\0'));
  static_cast<void>(coir::format(box_.machine, names.machine, '\0'));
  if (options.tools.has("log")) coir::keep_log_lines(true);
#if COIR_CLIENT
  if (options.fetch_hosts.count != 0) {
    auto opened = fetcher_.emplace(FetchList({options.fetch_hosts.texts, options.fetch_hosts.count})).open();
    if (!opened) return complain(kSeeMcp, {"--mcp-tool fetch: ", opened.error()});
    box_.fetcher = &*fetcher_;
  }
#endif
#if COIRD_MOUNTS
  const coir::mcp::GatewayOptions telling{
      .changed =
          [this](coir::mcp::ItemKind kind) {
            if (server_) server_->list_changed(kind);
          },
      .updated =
          [this](std::string_view uri) {
            if (server_) server_->resource_updated(uri);
          },
      .wanted = [this](std::string_view uri) { return server_ && server_->wants(uri); }};
  if (!mounts_.open(*daemon.options, telling)) return false;
  const std::span<coir::mcp::Source* const> sources = mounts_.sources();
#else
  if (options.mounts.count != 0)
    return complain("build it with both", {"--mcp-mount: this coird was built without COIR_CLIENT or COIR_STREAMS"});
  const std::span<coir::mcp::Source* const> sources;
#endif
  coir::mcp::Authorize judge;
  if (access_.by_issuer()) {
    judge = [this](const coir::http::Request&, std::string_view token, coir::mcp::Principal& who) {
      return access_.judge(token, who);
    };
  }
  auto server = coir::mcp::McpServer::create({
      .name = "coird",
      .title = "coird",
      .instructions = "Tools of a small board: its state, sensors and pins.",
      .tools = coird_tools(),
      .sources = sources,
      .context = &box_,
      .enabled_tools = {options.tools.texts, options.tools.count},
      .every_tool = false,
      .allow_origins = {options.origins.texts, options.origins.count},
      .token = access_.token(),
      .authorize = judge,
      .audit = write_audit,
      .resource_url = access_.resource(),
      .authorization_servers = access_.issuers(),
      .scopes = access_.scopes(),
      .calls_per_second = options.rate,
  });
  if (!server) return complain(kSeeMcp, {"--mcp: ", server.error()});
  server_.emplace(std::move(*server));
  return true;
}

#endif
