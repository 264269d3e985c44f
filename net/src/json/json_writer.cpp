#include <coir/detail/fatal.h>
#include <coir/json_writer.h>
#include <string.h>

#include <algorithm>

namespace coir {
namespace {

// piece_end is where a piece of at most `most` bytes ends so that no character of UTF-8 is cut.
std::size_t piece_end(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text.size();
  std::size_t end = most;
  while (end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  // Four bytes that go on a character are no UTF-8.
  return end > most - 4 ? end : most;
}

}  // namespace

// Behind a failure nothing is written, and nothing is checked either.
void JsonWriter::put(std::string_view text) noexcept {
  if (failed()) return;
  if (text.size() > kGathered - gathered_bytes_) flush();
  if (failed()) return;
  if (text.size() > kGathered) {
    if (const auto written = write_(sink_, text); !written) failure_ = written.error();
    return;
  }
  if (!text.empty()) memcpy(gathered_ + gathered_bytes_, text.data(), text.size());
  gathered_bytes_ += static_cast<std::uint16_t>(text.size());
}

void JsonWriter::flush() noexcept {
  if (gathered_bytes_ == 0 || failed()) return;
  const std::string_view text(gathered_, gathered_bytes_);
  gathered_bytes_ = 0;
  if (const auto written = write_(sink_, text); !written) failure_ = written.error();
}

// begin_value is what stands before a value: a comma between elements. In an object the name brings it.
void JsonWriter::begin_value() noexcept {
  if (failed()) return;
  if (in_object()) {
    if (!named_) detail::fatal("JsonWriter: a value in an object has no name");
    named_ = false;
    return;
  }
  if (depth_ == 0 && written_) detail::fatal("JsonWriter: a second value follows the whole text");
  if (comma_) put(",");
  comma_ = true;
}

JsonWriter& JsonWriter::begin(char bracket) noexcept {
  begin_value();
  if (depth_ == kMaxDepth) fail(ErrorCode::limit);
  if (failed()) return *this;
  const std::uint64_t bit = std::uint64_t{1} << depth_;
  objects_ = bracket == '{' ? objects_ | bit : objects_ & ~bit;
  ++depth_;
  comma_ = false;
  put({&bracket, 1});
  return *this;
}

JsonWriter& JsonWriter::end() noexcept {
  if (failed()) return *this;
  if (depth_ == 0) detail::fatal("JsonWriter: an end too many");
  if (named_) detail::fatal("JsonWriter: a name has no value");
  put(in_object() ? "}" : "]");
  --depth_;
  comma_ = true;
  written_ = depth_ == 0;
  return *this;
}

JsonWriter& JsonWriter::name(std::string_view name) noexcept {
  if (failed()) return *this;
  if (!in_object() || named_) detail::fatal("JsonWriter: a name stands where no name can");
  if (comma_) put(",");
  comma_ = true;
  quoted(name);
  put(":");
  named_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) noexcept {
  begin_value();
  quoted(text);
  written_ = depth_ == 0;
  return *this;
}

JsonWriter& JsonWriter::value(NumberPart number) noexcept {
  number.zeros = 0;  // JSON has no zeros in front
  char room[64];
  Formatter digits(room);
  digits.add(number);
  if (!digits.fits()) fail(ErrorCode::limit);
  return raw(digits.text());
}

JsonWriter& JsonWriter::floating(double number) noexcept {
  char room[32];
  return __builtin_isfinite(number) ? raw(format(room, number)) : null();
}

JsonWriter& JsonWriter::floating(float number) noexcept {
  char room[32];
  return __builtin_isfinite(number) ? raw(format(room, number)) : null();
}

JsonWriter& JsonWriter::raw(std::string_view json) noexcept {
  begin_value();
  put(json);
  written_ = depth_ == 0;
  return *this;
}

// quoted writes pieces that fit in a small buffer when each of their bytes takes six.
void JsonWriter::quoted(std::string_view text) noexcept {
  constexpr std::size_t kPiece = 64;
  char room[kPiece * 6 + 2];
  put("\"");
  while (!text.empty()) {
    const std::size_t bytes = piece_end(text, kPiece);
    const std::string_view piece = format(room, json_quoted(text.substr(0, bytes)));
    put(piece.substr(1, piece.size() - 2));
    text.remove_prefix(bytes);
  }
  put("\"");
}

std::expected<void, Error> JsonWriter::finish() noexcept {
  flush();
  if (failed()) return std::unexpected(failure_);
  if (depth_ != 0 || !written_) return std::unexpected(Error{ErrorCode::invalid});
  return {};
}

}  // namespace coir
