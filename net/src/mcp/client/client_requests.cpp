// The requests of coir/mcp/client.h whose params are filled in.
#include <coir/cancel_scope.h>
#include <coir/json_writer.h>
#include <coir/mcp/client.h>

#include "mcp/client/client_state.h"
#include "mcp/client/envelope.h"
#include "mcp/client/http_call.h"
#include "mcp/client/parameter_fields.h"
#include "mcp/client/wire/growing_text.h"

namespace coir::mcp {

using detail::GrowingText;
using detail::write_named;

namespace {

[[gnu::noinline]] std::expected<void, Error> write_completion(GrowingText& into, const Completion& wanted) noexcept {
  JsonWriter out(into);
  out.object().name("ref").object();
  if (!wanted.prompt.empty()) {
    out.member("type", "ref/prompt").member("name", wanted.prompt);
  } else {
    out.member("type", "ref/resource").member("uri", wanted.uri_template);
  }
  out.end().name("argument").object();
  out.member("name", wanted.argument).member("value", wanted.value).end();
  if (!wanted.context.empty()) out.name("context").object().name("arguments").raw(wanted.context).end();
  out.end();
  return out.finish();
}

// SchemaSearch finds the input schema of one tool in a list.
struct SchemaSearch {
  std::string_view tool;
  GrowingText schema;

  bool take(JsonView item, std::string_view text) noexcept {
    const auto name = item["name"].text();
    if (!name || *name != tool) return true;
    static_cast<void>(schema.write(detail::raw_member(text, "inputSchema")));
    return false;
  }
};

}  // namespace

std::expected<Answer, Failure> McpClient::discover(const CallOptions& options) noexcept {
  CancelScope scope(options.deadline.is_never() ? Deadline::after(state_->options.timeout) : options.deadline);
  const auto own = [&](Error error) {
    if (scope.caused(error)) error.scope = 0;
    return error;
  };
  detail::Agreement session;
  if (detail::Outcome agreed = detail::agree(*state_, session); !session.version) {
    if (!agreed.reply) return std::unexpected(Failure(own(agreed.error)));
    const Error error = detail::error_by_code(detail::error_code(*agreed.reply));
    return std::unexpected(Failure(error, agreed.reply.release()));
  }
  if (session.modern()) return request({.method = "server/discover", .repeatable = true}, options);
  auto held = state_->negotiating.lock();
  if (!held) return std::unexpected(Failure(own(held.error())));
  if (!state_->hello) return std::unexpected(Failure(ErrorCode::closed));
  auto copy = detail::Reply::read(state_->hello->text, state_->options.max_message);
  if (!copy) return std::unexpected(Failure(copy.error()));
  return Answer(copy->release());
}

std::expected<Answer, Failure> McpClient::call(std::string_view tool, std::string_view arguments,
                                               const CallOptions& options) noexcept {
  GrowingText params;
  if (auto written = write_named(params, "name", tool, arguments); !written) {
    return std::unexpected(Failure(written.error()));
  }
  const McpRequest wanted{.method = "tools/call", .params = params.view(), .name = tool};
  auto answer = request(wanted, options);
  if (answer || answer.error().code() != kHeaderMismatch || arguments.empty()) return answer;
  // The tool wants arguments in fields, which only its schema tells.
  SchemaSearch search{.tool = tool, .schema = {}};
  const CallOptions lists{.deadline = options.deadline};
  const auto listed = list(
      Listed::tools, [&](JsonView item, std::string_view text) noexcept { return search.take(item, text); }, lists);
  if (!listed || search.schema.empty()) return answer;
  CallOptions again = options;
  again.input_schema = search.schema.view();
  return request(wanted, again);
}

std::expected<Answer, Failure> McpClient::read(std::string_view uri, const CallOptions& options) noexcept {
  GrowingText params;
  if (auto written = write_named(params, "uri", uri, {}); !written) return std::unexpected(Failure(written.error()));
  return request({.method = "resources/read", .params = params.view(), .name = uri, .repeatable = true}, options);
}

std::expected<Answer, Failure> McpClient::prompt(std::string_view name, std::string_view arguments,
                                                 const CallOptions& options) noexcept {
  GrowingText params;
  if (auto written = write_named(params, "name", name, arguments); !written) {
    return std::unexpected(Failure(written.error()));
  }
  return request({.method = "prompts/get", .params = params.view(), .name = name, .repeatable = true}, options);
}

std::expected<Answer, Failure> McpClient::complete(const Completion& completion, const CallOptions& options) noexcept {
  GrowingText params;
  if (auto written = write_completion(params, completion); !written) return std::unexpected(Failure(written.error()));
  return request({.method = "completion/complete", .params = params.view(), .repeatable = true}, options);
}

}  // namespace coir::mcp
