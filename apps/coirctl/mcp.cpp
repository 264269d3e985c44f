#include "mcp.h"

#include "exit_status.h"
#include "fetch_options.h"

#if COIRCTL_MCP

#include <coir/file.h>
#include <coir/format.h>
#include <coir/mcp/client.h>
#include <string.h>
#include <unistd.h>

#include "authorities.h"

using coir::mcp::Answer;
using coir::mcp::Failure;
using coir::mcp::Listed;
using coir::mcp::McpClient;

namespace {

// Whether standard output has taken everything so far.
constinit bool g_printed = true;

void write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote <= 0) {
      if (fd == STDOUT_FILENO) g_printed = false;
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// print_line writes a JSON value as one line that no terminal obeys. A line end in it can only be white space between its
// parts. A control character of C1 (U+0080 to U+009F) can only be in a string, and JSON has an escape for it.
void print_line(int fd, std::string_view json) noexcept {
  while (!json.empty()) {
    const std::size_t size = std::min(json.find_first_of("\r\n\xc2"), json.size());
    write_all(fd, json.substr(0, size));
    json.remove_prefix(size);
    const std::string_view special = json.substr(0, json.starts_with('\xc2') ? 2 : 1);
    json.remove_prefix(special.size());
    if (special.size() < 2) continue;
    const auto second = static_cast<unsigned char>(special[1]);
    char room[8];
    write_all(fd, second < 0xa0 ? coir::format(room, "\\u", coir::hex(second, 4)) : special);
  }
  write_all(fd, "\n");
}

// failed tells why there is no answer. An answer by HTTP that is no success is the server's refusal.
int failed(const AskMcpOptions& options, const Failure& failure) noexcept {
  char why[400];
  if (failure.code() != 0) {
    say_error(options.url, coir::format(why, "the server refuses: ", failure.message(), " (", failure.code(), ")"));
    return kServer;
  }
  const std::string_view text = coir::describe(failure.error());
  say_error(options.url, text);
  return text.starts_with("the server ") && failure.error() != coir::ErrorCode::protocol ? kServer
                                                                                         : status_of(failure.error());
}

int list(McpClient& client, const AskMcpOptions& options, Listed what, const coir::mcp::CallOptions& how) noexcept {
  const auto listed = client.list(
      what,
      [](coir::JsonView, std::string_view text) noexcept {
        print_line(STDOUT_FILENO, text);
        return g_printed;
      },
      how);
  return listed ? kDone : failed(options, listed.error());
}

// read_token writes "Bearer TOKEN" of a file's first line.
bool read_token(const char* path, std::span<char> room, std::string_view& field) noexcept {
  char text[513];
  const auto token = coir::slurp(path, text);
  if (!token) return say_error(path, describe(token.error())), false;
  const std::string_view line = token->substr(0, token->find_first_of("\r\n"));
  if (line.empty()) return say_error(path, "its first line is empty"), false;
  field = coir::format(room, "Bearer ", line);
  return true;
}

std::expected<Answer, Failure> ask(McpClient& client, const AskMcpOptions& options,
                                   const coir::mcp::CallOptions& how) noexcept {
  const std::string_view arguments = options.arguments != nullptr ? options.arguments : "";
  switch (options.action) {
    case AskMcpOptions::Action::call:
      return client.call(options.name, arguments, how);
    case AskMcpOptions::Action::read:
      return client.read(options.name, how);
    case AskMcpOptions::Action::prompt:
      return client.prompt(options.name, arguments, how);
    default:
      return client.discover(how);
  }
}

// is_object tells whether the arguments are JSON, and an object.
bool is_object(const char* text) noexcept {
  if (text == nullptr) return true;
  const auto parsed = coir::JsonDocument::parse(text);
  return parsed && parsed->root().kind() == coir::JsonKind::object;
}

int run(const AskMcpOptions& options) noexcept {
  if (!is_object(options.arguments)) return say_error(options.arguments, "not a JSON object"), kCommand;
  static char bearer[540];  // a fiber's stack has no room for more
  coir::http::RequestField fields[1];
  std::size_t field_count = 0;
  if (options.token_file != nullptr) {
    std::string_view value;
    if (!read_token(options.token_file, bearer, value)) return kFile;
    fields[field_count++] = {.name = "Authorization", .value = value, .secret = true};
  }
  coir::http::ClientOptions policy;
  if (options.authorities != nullptr && !trust_file(options.authorities, policy)) return kTls;
  auto client = McpClient::create({.url = options.url,
                                   .fields = {fields, field_count},
                                   .http = &policy,
                                   .name = "coirctl",
                                   .max_message = 1 << 20});
  if (!client) return say_error(options.url, coir::describe(client.error())), status_of(client.error());
  coir::mcp::CallOptions how{.deadline = coir::Deadline::after(std::chrono::seconds(options.timeout_s))};
  if (options.progress) {
    how.told = [](const coir::mcp::Notification& notification) { print_line(STDERR_FILENO, notification.text); };
    how.log_level = "info";
  }
  int status = kDone;
  switch (options.action) {
    case AskMcpOptions::Action::tools:
      status = list(*client, options, Listed::tools, how);
      break;
    case AskMcpOptions::Action::resources:
      status = list(*client, options, Listed::resources, how);
      break;
    case AskMcpOptions::Action::templates:
      status = list(*client, options, Listed::templates, how);
      break;
    case AskMcpOptions::Action::prompts:
      status = list(*client, options, Listed::prompts, how);
      break;
    default:
      if (const auto answer = ask(*client, options, how)) {
        print_line(STDOUT_FILENO, answer->text());
        status = answer->is_error() ? kTool : kDone;
      } else {
        status = failed(options, answer.error());
      }
  }
  static_cast<void>(client->leave(coir::Deadline::after(std::chrono::seconds(1))));
  if (g_printed) return status;
  say_error("standard output", "it cannot be written");
  return kFile;
}

}  // namespace

int ask_mcp(const AskMcpOptions& options) noexcept {
  return run(options);
}

#else

int ask_mcp(const AskMcpOptions&) noexcept {
  say_error("mcp", "this coirctl was built without it (-DCOIR_MCP=ON with fibers and COIR_STREAMS)");
  return kCommand;
}

#endif
