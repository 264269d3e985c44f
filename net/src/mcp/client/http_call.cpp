#include "mcp/client/http_call.h"

#include <coir/mcp/detail/account.h>

#include "base/charged.h"
#include "client/transfer.h"
#include "http/text/base64.h"
#include "mcp/client/parameter_fields.h"
#include "mcp/client/wire/field_value.h"

namespace coir::mcp::detail {

HttpCall::HttpCall(McpClientState& state, const Agreement& session) noexcept
    : messages(state.options.max_message), state_(state), session_(session) {}

bool HttpCall::add(std::string_view name, std::string_view value) noexcept {
  if (count_ == std::size(fields_)) return false;
  fields_[count_++] = {name, value};
  return true;
}

bool HttpCall::add_common(std::string_view accept) noexcept {
  bool fits = add("Accept", accept);
  // The oldest revision knows no such field.
  if (session_.version && *session_.version >= Version::v2025_06_18) {
    fits = add(kVersionField, version_text(*session_.version)) && fits;
  }
  if (!session_.name_text().empty()) {
    fits = add(kSessionField, session_.name_text()) && fits;
    fields_[count_ - 1].secret = true;
  }
  for (const http::RequestField& field : state_.options.fields) {
    fits = add(field.name, field.value) && fits;
    fields_[count_ - 1].secret = field.secret;
  }
  return fits;
}

std::expected<void, Error> HttpCall::name_request(const Ask& ask) noexcept {
  add(kMethodField, ask.request.method);
  const bool has_parameters = !ask.options.input_schema.empty();
  std::string_view name = ask.request.name;
  if (!has_parameters && (name.empty() || is_plain_value(name))) {
    if (!name.empty()) add(kNameField, name);
    return {};
  }
  auto taken = Buffer::take(http::base64_bytes(name.size()) + Buffer::kLeast);
  if (!taken) return std::unexpected(taken.error());
  values_ = std::move(*taken);
  if (!name.empty() && !is_plain_value(name)) {
    name = encode_value(name, values_.bytes());
    values_used_ = name.size();
  }
  if (!name.empty()) add(kNameField, name);
  if (!has_parameters) return {};
  ParameterFields parameters(ask.options.input_schema, values_.bytes().subspan(values_used_));
  const std::string_view arguments = raw_member(ask.request.params, "arguments");
  while (const auto field = parameters.next(arguments)) {
    if (!add(field->name, field->value)) return std::unexpected(Error{ErrorCode::limit});
  }
  if (parameters.full()) return std::unexpected(Error{ErrorCode::limit});
  return {};
}

http::ClientRequest HttpCall::filled(http::ClientRequest request) noexcept {
  request.url = state_.options.url;
  request.to = state_.options.to;
  request.fields = std::span(fields_).first(count_);
  state_.counters.requests.fetch_add(1, std::memory_order_relaxed);
  return request;
}

std::expected<http::Response, Error> HttpCall::request(http::ClientRequest request) noexcept {
  return state_.http->request(filled(request));
}

std::expected<http::detail::Transfer*, Error> HttpCall::begin_message(std::string_view content) noexcept {
  if (!add_common("application/json, text/event-stream")) return std::unexpected(Error{ErrorCode::limit});
  const http::ClientRequest sent = filled({.method = "POST", .content_type = "application/json", .content = content});
  return http::detail::Transfer::start(state_.http->core(), sent);
}

std::expected<http::Response, Error> HttpCall::post_message(std::string_view content) noexcept {
  if (!add_common("application/json, text/event-stream")) return std::unexpected(Error{ErrorCode::limit});
  return request({.method = "POST", .content_type = "application/json", .content = content});
}

std::expected<http::Response, Error> HttpCall::get_stream(std::string_view last_id) noexcept {
  count_ = 0;
  bool fits = add_common("text/event-stream");
  if (!last_id.empty()) fits = add("Last-Event-ID", last_id) && fits;
  if (!fits) return std::unexpected(Error{ErrorCode::limit});
  return request({.method = "GET"});
}

std::expected<http::Response, Error> HttpCall::end_session() noexcept {
  if (!add_common("application/json")) return std::unexpected(Error{ErrorCode::limit});
  return request({.method = "DELETE"});
}

HttpCallPtr::HttpCallPtr(McpClientState& state, const Agreement& session) noexcept {
  call_ = construct_charged<HttpCall>(account::mcp, state, session);
}

HttpCallPtr::~HttpCallPtr() {
  destroy_charged(account::mcp, call_);
}

}  // namespace coir::mcp::detail
