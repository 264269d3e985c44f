#pragma once

#include <coir/json.h>
#include <coir/mcp/detail/answer.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

namespace coir::mcp::detail {

enum class MessageKind : std::uint8_t { result, error, request, notification };

// ReplyBlock is one JSON-RPC message that came, in one block of memory of account::mcp:
//
//   | ReplyBlock | the text, as it came | JsonDocument's memory: the text in pieces, values |
struct ReplyBlock {
  ReplyBlock(std::size_t bytes, std::string_view as_it_came, JsonDocument&& parsed) noexcept
      : charged(bytes), text(as_it_came), document(std::move(parsed)) {}

  const std::size_t charged;
  const std::string_view text;
  JsonDocument document;
  MessageKind kind = MessageKind::result;
  std::string_view method;          // of a request and a notification
  std::string_view body;            // as it came: params, result or error; absent where there is none
  std::string_view id_text;         // as it came
  std::optional<std::uint64_t> id;  // where it is one of ours
  ReplyBlock* next = nullptr;       // in a queue of a program's
};

// Reply owns one. reply.cpp has Answer and Failure as well.
class Reply {
 public:
  Reply() noexcept = default;
  explicit Reply(ReplyBlock* block) noexcept : block_(block) {}
  Reply(Reply&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Reply& operator=(Reply&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Reply() { free_reply(block_); }

  // read takes a message apart. Errors: invalid (it is no JSON), protocol (it is no JSON-RPC), limit (longer than `most`,
  // nested deeper than 64, or too many values for its size), no_memory.
  [[nodiscard]] static std::expected<Reply, Error> read(std::string_view text, std::size_t most) noexcept;

  explicit operator bool() const noexcept { return block_ != nullptr; }
  ReplyBlock* operator->() const noexcept { return block_; }
  ReplyBlock& operator*() const noexcept { return *block_; }
  ReplyBlock* release() noexcept { return std::exchange(block_, nullptr); }

 private:
  ReplyBlock* block_ = nullptr;
};

// error_code is JSON-RPC's code of an error that came, and the coir error that stands for it.
int error_code(const ReplyBlock& block) noexcept;
Error error_by_code(int code) noexcept;

}  // namespace coir::mcp::detail
