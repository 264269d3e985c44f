#pragma once

#include <coir/error.h>
#include <coir/format.h>
#include <coir/mcp.h>
#include <coir/pressure.h>
#include <stdlib.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

// Workspace is memory for one call of a tool, charged to account::mcp.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) noexcept {
    if (!coir::Pressure::charge(coir::account::mcp, bytes)) return;
    start_ = static_cast<char*>(malloc(bytes));
    if (start_ == nullptr) {
      coir::account::mcp.refund(bytes);
    } else {
      size_ = bytes;
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    free(start_);
    coir::account::mcp.refund(size_);
  }

  // bytes is empty where there was no memory.
  std::span<char> bytes() const noexcept { return {start_, size_}; }

 private:
  char* start_ = nullptr;
  std::size_t size_ = 0;
};

// TextSink gathers what a JsonWriter writes. Errors: limit (it does not fit).
class TextSink {
 public:
  explicit TextSink(std::span<char> room) noexcept : out_(room) {}

  std::expected<void, coir::Error> write(std::string_view text) noexcept {
    out_.add(text);
    if (out_.fits()) return {};
    return std::unexpected(coir::Error{coir::ErrorCode::limit});
  }
  std::string_view text() const noexcept { return out_.text(); }

 private:
  coir::Formatter out_;
};
