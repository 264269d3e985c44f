#pragma once

#include <coir/error.h>
#include <coir/json.h>

#include <string_view>
#include <utility>

namespace coir::mcp {

namespace detail {
struct ReplyBlock;
void free_reply(ReplyBlock* block) noexcept;
}  // namespace detail

// Answer is a result that an MCP server has sent. It owns its memory, which is of account::mcp; move-only.
//
//   auto answer = client->call("add", R"({"a":2,"b":3})");
//   if (!answer) return complain(answer.error().message());
//   if (answer->is_error()) ...                              // the tool ran, and says that it has failed
//   const auto text = answer->result()["content"][0]["text"].text();
class Answer {
 public:
  Answer(Answer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Answer& operator=(Answer&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Answer() { detail::free_reply(block_); }

  // result is the member `result`, text the same as JSON, as the server wrote it. Both live as long as the answer.
  JsonView result() const noexcept;
  std::string_view text() const noexcept;
  // is_error tells whether a tool's result has `isError`.
  bool is_error() const noexcept;

  explicit Answer(detail::ReplyBlock* block) noexcept : block_(block) {}

 private:
  detail::ReplyBlock* block_;
};

// Failure is why there is no answer: an error of coir's and, where the server has answered by an error of JSON-RPC, its
// code, message and data, which live as long as the failure. Move-only.
class Failure {
 public:
  Failure(Error why) noexcept : error_(why) {}
  Failure(ErrorCode why) noexcept : error_(why) {}
  Failure(Error why, detail::ReplyBlock* block) noexcept : error_(why), block_(block) {}
  Failure(Failure&& other) noexcept : error_(other.error_), block_(std::exchange(other.block_, nullptr)) {}
  Failure& operator=(Failure&& other) noexcept {
    error_ = other.error_;
    std::swap(block_, other.block_);
    return *this;
  }
  ~Failure() { detail::free_reply(block_); }

  // error of an answer by JSON-RPC: invalid (-32602), not_found (-32002), unsupported (-32601, -32021, -32022), protocol
  // (-32600, -32700, -32020), else temporary.
  Error error() const noexcept { return error_; }
  // code is JSON-RPC's, 0 where there was no such answer; -32603 where the server has sent 0 or no number. message is the
  // server's own, empty without a code. data is JSON, absent without.
  int code() const noexcept;
  std::string_view message() const noexcept;
  std::string_view data() const noexcept;

  friend bool operator==(const Failure& failure, ErrorCode code) noexcept { return failure.error_ == code; }

 private:
  Error error_;
  detail::ReplyBlock* block_ = nullptr;
};

}  // namespace coir::mcp
