#include "mcp/client/wire/reply.h"

#include <coir/mcp/detail/account.h>
#include <coir/mcp/detail/protocol.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/rounded.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp {

namespace detail {

namespace {

constexpr std::size_t kMaxDepth = 64;
// A document of small values takes up to 24 times its text.
constexpr std::size_t kMostShare = 8, kSmall = 64 * 1024;

bool classify(ReplyBlock& block) noexcept {
  const JsonView root = block.document.root();
  if (root.kind() != JsonKind::object) return false;
  block.id_text = raw_member(block.text, "id");
  if (const auto id = root.find("id"); id && id->kind() == JsonKind::number) {
    if (const auto number = id->integer<std::uint64_t>()) block.id = *number;
  }
  if (const auto method = root.find("method"); method && method->kind() == JsonKind::text) {
    block.method = *method->text();
    block.body = raw_member(block.text, "params");
    const bool asks = !block.id_text.empty() && block.id_text != "null";
    block.kind = asks ? MessageKind::request : MessageKind::notification;
    return true;
  }
  if (const auto error = root.find("error"); error && error->kind() == JsonKind::object) {
    block.kind = MessageKind::error;
    block.body = raw_member(block.text, "error");
    return true;
  }
  const auto result = root.find("result");
  block.body = raw_member(block.text, "result");
  return result && result->kind() == JsonKind::object && !block.body.empty();
}

}  // namespace

void free_reply(ReplyBlock* block) noexcept {
  if (block == nullptr) return;
  const std::size_t charged = block->charged;
  block->~ReplyBlock();
  free(block);
  account::mcp.refund(charged);
}

std::expected<Reply, Error> Reply::read(std::string_view text, std::size_t most) noexcept {
  if (text.size() > most) return std::unexpected(Error{ErrorCode::limit});
  const std::size_t document_at = rounded(sizeof(ReplyBlock) + text.size(), alignof(ReplyBlock));
  const std::size_t document_bytes = JsonDocument::bytes_needed(text);
  if (document_bytes > kSmall + kMostShare * most) return std::unexpected(Error{ErrorCode::limit});
  const std::size_t bytes = document_at + document_bytes;
  if (!Pressure::charge(account::mcp, bytes)) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const memory = static_cast<char*>(malloc(bytes));
  if (memory == nullptr) {
    account::mcp.refund(bytes);
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  char* const copy = memory + sizeof(ReplyBlock);
  if (!text.empty()) memcpy(copy, text.data(), text.size());
  auto parsed = JsonDocument::parse(text, std::span(memory + document_at, document_bytes),
                                    {.max_bytes = most, .max_depth = kMaxDepth});
  if (!parsed) {
    free(memory);
    account::mcp.refund(bytes);
    return std::unexpected(parsed.error().error);
  }
  Reply reply(::new (memory) ReplyBlock(bytes, {copy, text.size()}, std::move(*parsed)));
  if (!classify(*reply)) return std::unexpected(Error{ErrorCode::protocol});
  return reply;
}

int error_code(const ReplyBlock& block) noexcept {
  const auto error = block.document.root().find("error");
  const auto code = error ? error->find("code") : std::nullopt;
  const auto number = code && code->kind() == JsonKind::number ? code->integer<int>() : std::unexpected(Error{});
  // 0 is "none" to callers; some servers answer their own failures by it.
  return number && *number != 0 ? *number : kInternalError;
}

Error error_by_code(int code) noexcept {
  switch (code) {
    case kInvalidParams:
      return ErrorCode::invalid;
    case kResourceNotFound:
      return ErrorCode::not_found;
    case kMethodNotFound:
    case kMissingCapability:
    case kUnsupportedVersion:
      return ErrorCode::unsupported;
    case kParseError:
    case kInvalidRequest:
    case kHeaderMismatch:
      return ErrorCode::protocol;
    default:
      return ErrorCode::temporary;
  }
}

}  // namespace detail

JsonView Answer::result() const noexcept {
  return block_->document.root()["result"];
}

std::string_view Answer::text() const noexcept {
  return block_->body;
}

bool Answer::is_error() const noexcept {
  const auto flag = result().find("isError");
  if (!flag || flag->kind() != JsonKind::boolean) return false;
  const auto truth = flag->boolean();
  return truth && *truth;
}

int Failure::code() const noexcept {
  return block_ == nullptr ? 0 : detail::error_code(*block_);
}

std::string_view Failure::message() const noexcept {
  if (block_ == nullptr) return {};
  const auto error = block_->document.root().find("error");
  const auto message = error ? error->find("message") : std::nullopt;
  if (!message || message->kind() != JsonKind::text) return {};
  const auto text = message->text();
  return text ? *text : std::string_view();
}

std::string_view Failure::data() const noexcept {
  return block_ == nullptr ? std::string_view() : detail::raw_member(block_->body, "data");
}

}  // namespace coir::mcp
