#include "serving.h"

#if COIRD_MCP

#include <coir/file.h>
#include <coir/net/log_line.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "../complaint.h"
#include "../daemon.h"
#include "../private_file.h"

namespace {

constexpr const char* kSeeMcp = "coird --help tells of --mcp";
constexpr std::size_t kShortestToken = 20;

}  // namespace

McpServing::~McpServing() {
  server_.reset();
  coir::keep_log_lines(false);
}

// read_token takes the first line of the file.
bool McpServing::read_token(const char* path) noexcept {
  const auto file = coir::File::open(path);
  if (!file) return complain(kSeeMcp, {path, ": ", file.error()});
  if (const char* const why = exposed(file->fd()))
    return complain("chmod 600, and its owner is to be coird's", {path, ": ", why});
  const auto size = file->read_all(token_room_);
  if (!size) return complain(kSeeMcp, {path, ": ", size.error()});
  token_ = std::string_view(token_room_, *size);
  token_ = token_.substr(0, token_.find_first_of("\r\n"));
  const bool visible = std::ranges::all_of(token_, [](char c) { return c > ' ' && c <= '~'; });
  if (token_.size() < kShortestToken || !visible)
    return complain("head -c 24 /dev/urandom | base64 makes one",
                    {path, ": its first line is no token of ", kShortestToken, " characters or more"});
  return true;
}

// write_audit is a line for what was asked for. A name is the client's text: it is quoted.
void McpServing::write_audit(void*, const coir::mcp::Audit& line) noexcept {
  constexpr std::size_t kMostOfName = 80;
  char text[kMostOfName * 6 + 160];
  coir::Formatter out(text);
  out.add("mcp: ", line.method);
  if (!line.name.empty()) out.add(" ", coir::json_quoted(line.name.substr(0, kMostOfName)));
  if (!line.who.empty()) out.add(" by ", line.who);
  out.add(": ", line.outcome);
  if (line.code != 0) out.add(" (", line.code, ")");
  out.add(", ", line.took.count(), " ms");
  say({out.text()});
}

void McpServing::tell_change([[maybe_unused]] void* serving, [[maybe_unused]] coir::mcp::ItemKind kind) noexcept {
  auto& server = static_cast<McpServing*>(serving)->server_;
  if (server) server->list_changed(kind);
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

bool McpServing::open(const McpOptions& options, const Daemon& daemon) noexcept {
  path_ = options.path;
  if (options.token_file != nullptr && !read_token(options.token_file)) return false;
  auto hardware = coir::port::Hardware::open(options.sysfs);
  if (!hardware && (options.sysfs_given || hardware.error() != ENOENT))
    return complain(kSeeMcp, {"--sysfs ", options.sysfs, ": ", coir::Error::from_errno(hardware.error())});
  if (hardware) box_.hardware = std::move(*hardware);
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
  if (!mounts_.open(options, tell_change, this)) return false;
  const std::span<coir::mcp::Source* const> sources = mounts_.sources();
#else
  if (options.mounts.count != 0)
    return complain("build it with both", {"--mcp-mount: this coird was built without COIR_CLIENT or COIR_STREAMS"});
  const std::span<coir::mcp::Source* const> sources;
#endif
  auto server = coir::mcp::Server::create({
      .name = "coird",
      .title = "coird",
      .instructions = "Tools of a small board: its state, sensors and pins.",
      .tools = coird_tools(),
      .sources = sources,
      .context = &box_,
      .enabled_tools = {options.tools.texts, options.tools.count},
      .every_tool = false,
      .allow_origins = {options.origins.texts, options.origins.count},
      .token = token_,
      .audit = write_audit,
  });
  if (!server) return complain(kSeeMcp, {"--mcp: ", server.error()});
  server_.emplace(std::move(*server));
  return true;
}

#endif
