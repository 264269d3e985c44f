#include <coir/http/content.h>
#include <coir/pressure.h>
#include <stdlib.h>

#include <algorithm>

namespace coir::http {
namespace {

constexpr std::size_t kLineBytes = 200;

std::unexpected<Error> refuse(Exchange& exchange, int status, ErrorCode code) noexcept {
  exchange.respond_status(status, status == 503 ? "Retry-After: 1\r\n" : std::string_view());
  return std::unexpected(Error{code});
}

std::expected<void, Error> require_json(Exchange& exchange) noexcept {
  if (is_json_type(exchange.request().header("Content-Type"))) return {};
  return require_media_type(exchange, "application/json");
}

// answer_flaw tells the client what is wrong with its text.
std::unexpected<Error> answer_flaw(Exchange& exchange, const JsonFlaw& flaw, bool too_long) noexcept {
  if (flaw.error == ErrorCode::no_memory) return refuse(exchange, 503, ErrorCode::no_memory);
  char line[kLineBytes];
  exchange.respond(too_long ? 413 : 400, "text/plain; charset=utf-8",
                   format(line, "byte ", flaw.offset, ": ", flaw.what, "\n"));
  return std::unexpected(flaw.error);
}

// is_about_size tells a text that is too long, for the limit or the memory, from one that is nested too deep.
bool is_about_size(const JsonFlaw& flaw, std::string_view text, const JsonLimits& limits) noexcept {
  return flaw.error == ErrorCode::limit && (text.size() > limits.max_bytes || flaw.offset == 0);
}

// Arriving is memory of the heap for content on its way, charged.
class Arriving {
 public:
  explicit Arriving(std::size_t bytes) noexcept : bytes_(bytes) {
    if (!Pressure::charge(account::json, bytes)) return;
    memory_ = static_cast<char*>(malloc(bytes));
    if (memory_ == nullptr) account::json.refund(bytes);
  }
  ~Arriving() {
    if (memory_ == nullptr) return;
    free(memory_);
    account::json.refund(bytes_);
  }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

  explicit operator bool() const noexcept { return memory_ != nullptr; }
  std::span<char> room() const noexcept { return {memory_, bytes_}; }

 private:
  std::size_t bytes_;
  char* memory_ = nullptr;
};

}  // namespace

std::expected<JsonDocument, Error> read_json(Exchange& exchange, std::span<char> memory,
                                             const JsonLimits& limits) noexcept {
  if (auto is_json = require_json(exchange); !is_json) return std::unexpected(is_json.error());
  const auto text = read_content(exchange, memory.first(std::min(memory.size(), limits.max_bytes)));
  if (!text) return std::unexpected(text.error());
  auto document = JsonDocument::parse(*text, memory, limits);
  if (!document) return answer_flaw(exchange, document.error(), is_about_size(document.error(), *text, limits));
  return std::move(*document);
}

std::expected<JsonDocument, Error> read_json(Exchange& exchange, const JsonLimits& limits) noexcept {
  if (auto is_json = require_json(exchange); !is_json) return std::unexpected(is_json.error());
  const Request& request = exchange.request();
  std::size_t most = limits.max_bytes;
  if (request.framing == Framing::length)
    most = static_cast<std::size_t>(std::min<std::uint64_t>(most, request.content_length));
  if (request.framing == Framing::none) most = 0;
  const Arriving arriving(std::max<std::size_t>(most, 1));
  if (!arriving) return refuse(exchange, 503, ErrorCode::no_memory);
  const auto text = read_content(exchange, arriving.room().first(most));
  if (!text) return std::unexpected(text.error());
  auto document = JsonDocument::parse(*text, limits);
  if (!document) return answer_flaw(exchange, document.error(), false);
  return std::move(*document);
}

void refuse_json(Exchange& exchange, const JsonDocument& document) noexcept {
  char line[kLineBytes];
  char room[kLineBytes - 1];
  const std::string_view complaint = document.complaint(room);
  exchange.respond(
      400, "text/plain; charset=utf-8",
      format(line, complaint.empty() ? std::string_view("the content is not as it should be") : complaint, "\n"));
}

std::expected<void, Error> begin_json(Exchange& exchange, int status) noexcept {
  exchange.start(status).field("Content-Type", "application/json");
  return exchange.begin_chunked();
}

namespace detail {

void respond_json(Exchange& exchange, int status, const void* value, WriteJson* write) noexcept {
  struct Measure {
    std::uint64_t bytes = 0;
    std::expected<void, Error> write(std::string_view text) noexcept {
      bytes += text.size();
      return {};
    }
  } measure;
  // One writer at a time on the stack.
  const auto put = [&](auto& sink) {
    JsonWriter out(sink);
    write(out, value);
    return out.finish();
  };
  if (!put(measure)) return exchange.respond_status(500);
  exchange.start(status).field("Content-Type", "application/json");
  if (!exchange.begin_fixed(measure.bytes)) return;
  if (!put(exchange)) exchange.close_after();
}

}  // namespace detail

}  // namespace coir::http
