#include <coir/json.h>

#include <coir/pressure.h>
#include <coir/worker_stack.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "base/rounded.h"
#include "json/scan.h"
#include "json/state.h"

namespace coir {

namespace account {
constinit Account json("json");
}

using detail::JsonState;

namespace {

constexpr std::size_t kPool = 128;  // what yyjson's pool takes besides the values, rounding included

std::unexpected<JsonFlaw> flaw(ErrorCode code, std::size_t offset, const char* what) noexcept {
  return std::unexpected(JsonFlaw{Error{code}, offset, what});
}

// state_at is where the state begins behind a text that stands at the front of the memory.
std::size_t state_at(const char* memory, std::size_t text_bytes) noexcept {
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + text_bytes + YYJSON_PADDING_SIZE;
  return rounded(end, std::uintptr_t{alignof(JsonState)}) - reinterpret_cast<std::uintptr_t>(memory);
}

constexpr const char* kTooLong = "longer than is allowed";

const char* bound(std::string_view text, const JsonLimits& limits, detail::JsonScan& scan, std::size_t& at) noexcept {
  at = limits.max_bytes;
  if (text.size() > limits.max_bytes) return kTooLong;
  scan = detail::scan_json(text, limits.max_depth);
  at = scan.too_deep_at;
  return scan.too_deep ? "nested deeper than is allowed" : nullptr;
}

// read parses a text that stands at the front of `memory`.
std::expected<JsonState*, JsonFlaw> read(std::span<char> memory, std::size_t size) noexcept {
  const std::size_t at = state_at(memory.data(), size);
  constexpr const char* kNoRoom = "more than the memory for it holds";
  if (at + sizeof(JsonState) + kPool > memory.size()) return flaw(ErrorCode::limit, 0, kNoRoom);
  memset(memory.data() + size, 0, YYJSON_PADDING_SIZE);
  auto* const state = ::new (memory.data() + at) JsonState;
  const std::span<char> pool = memory.subspan(at + sizeof(JsonState));
  yyjson_alc allocator;
  if (!yyjson_alc_pool_init(&allocator, pool.data(), pool.size())) return flaw(ErrorCode::limit, 0, kNoRoom);
  yyjson_read_err error{};
  // The C library's strtod goes 8 KB deep.
  state->document =
      on_worker_stack([&] { return yyjson_read_opts(memory.data(), size, YYJSON_READ_INSITU, &allocator, &error); });
  if (state->document != nullptr) return state;
  if (error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return flaw(ErrorCode::limit, 0, kNoRoom);
  return flaw(ErrorCode::invalid, std::min(error.pos, size), size == 0 ? "no JSON at all" : error.msg);
}

}  // namespace

// yyjson begins with a guess of a sixth of the text's bytes and takes half as much
// again when it runs out.
std::size_t detail::document_bytes(std::size_t text_bytes, const JsonScan& scan) noexcept {
  constexpr std::size_t kHeader = (sizeof(yyjson_doc) + sizeof(yyjson_val) - 1) / sizeof(yyjson_val);
  const std::size_t guessed = kHeader + text_bytes / 6 + 4;
  const std::size_t grown = (kHeader + scan.values + 3) * 3 / 2 + 1;
  return text_bytes + YYJSON_PADDING_SIZE + alignof(JsonState) + sizeof(JsonState) + kPool +
         std::max(guessed, grown) * sizeof(yyjson_val);
}

std::size_t JsonDocument::bytes_needed(std::string_view text) noexcept {
  return detail::document_bytes(text.size(), detail::scan_json(text, SIZE_MAX));
}

std::expected<JsonDocument, JsonFlaw> JsonDocument::parse(std::string_view text, std::span<char> memory,
                                                          const JsonLimits& limits) noexcept {
  if (text.size() > limits.max_bytes) return flaw(ErrorCode::limit, limits.max_bytes, kTooLong);
  if (limits.max_depth != SIZE_MAX) {
    detail::JsonScan scan;
    std::size_t at;
    if (const char* const what = bound(text, limits, scan, at)) return flaw(ErrorCode::limit, at, what);
  }
  if (text.size() > memory.size()) return flaw(ErrorCode::limit, 0, "more than the memory for it holds");
  if (!text.empty() && text.data() != memory.data()) memmove(memory.data(), text.data(), text.size());
  const auto state = read(memory, text.size());
  if (!state) return std::unexpected(state.error());
  return JsonDocument(*state);
}

std::expected<JsonDocument, JsonFlaw> JsonDocument::parse(std::string_view text, const JsonLimits& limits) noexcept {
  detail::JsonScan scan;
  std::size_t at;
  if (const char* const what = bound(text, limits, scan, at)) return flaw(ErrorCode::limit, at, what);
  const std::size_t bytes = detail::document_bytes(text.size(), scan);
  constexpr const char* kNoMemory = "no memory for it";
  if (!Pressure::charge(account::json, bytes)) return flaw(ErrorCode::no_memory, 0, kNoMemory);
  auto* const block = static_cast<char*>(malloc(bytes));
  if (block == nullptr) {
    account::json.refund(bytes);
    return flaw(ErrorCode::no_memory, 0, kNoMemory);
  }
  if (!text.empty()) memcpy(block, text.data(), text.size());
  const auto state = read({block, bytes}, text.size());
  if (!state) {
    free(block);
    account::json.refund(bytes);
    return std::unexpected(state.error());
  }
  (*state)->block = block;
  (*state)->charged = bytes;
  return JsonDocument(*state);
}

JsonDocument::~JsonDocument() {
  if (state_ == nullptr || state_->block == nullptr) return;
  const std::size_t charged = state_->charged;
  free(state_->block);
  account::json.refund(charged);
}

JsonView JsonDocument::root() const noexcept {
  return {state_, detail::of(yyjson_doc_get_root(state_->document))};
}

bool JsonDocument::sound() const noexcept {
  return !state_->complaint.any();
}

}  // namespace coir
