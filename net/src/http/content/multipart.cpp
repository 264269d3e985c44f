#include <coir/http/content.h>
#include <string.h>

#include <algorithm>
#include <utility>

namespace coir::http {

using Event = detail::MultipartParser::Event;

Multipart::Multipart(Exchange& exchange, std::span<char> memory, const MultipartLimits& limits) noexcept
    : exchange_(exchange), parser_(memory, limits) {
  if (memory.size() < kLeastMemory || memory.size() - kLeastMemory / 2 < limits.max_header_bytes) {
    failed_ = Error{ErrorCode::limit};
  } else if (const std::uint16_t status = parser_.begin(exchange.request().header("Content-Type"))) {
    static_cast<void>(refuse(status));
  }
}

std::unexpected<Error> Multipart::refuse(std::uint16_t status) noexcept {
  failed_ = Error{status == 415 ? ErrorCode::unsupported : status == 413 ? ErrorCode::limit : ErrorCode::invalid};
  exchange_.respond_status(status, status == 415 ? "Accept: multipart/form-data\r\n" : "");
  return std::unexpected(failed_);
}

std::expected<Event, Error> Multipart::step() noexcept {
  if (failed_.code != ErrorCode{}) return std::unexpected(failed_);
  for (;;) {
    const Event event = parser_.next();
    if (event == Event::bad) return refuse(parser_.status());
    if (event != Event::more) return event;
    const auto got = exchange_.read_body(parser_.room());
    if (got) {
      parser_.filled(*got);
    } else if (got.error() == ErrorCode::end_of_stream) {
      parser_.ended();
    } else {
      failed_ = got.error();
      return std::unexpected(failed_);
    }
  }
}

std::expected<Part, Error> Multipart::next() noexcept {
  left_ = {};
  for (;;) {
    const auto event = step();
    if (!event) return std::unexpected(event.error());
    in_part_ = *event == Event::part || *event == Event::content;
    if (*event == Event::part) return parser_.part();
    if (*event == Event::end) return std::unexpected(Error{ErrorCode::end_of_stream});
  }
}

std::expected<std::string_view, Error> Multipart::piece() noexcept {
  if (!left_.empty()) return std::exchange(left_, {});
  if (!in_part_) return std::unexpected(Error{ErrorCode::end_of_stream});
  const auto event = step();
  if (!event) return std::unexpected(event.error());
  if (*event == Event::content) return parser_.content();
  in_part_ = false;
  return std::unexpected(Error{ErrorCode::end_of_stream});
}

std::expected<std::size_t, Error> Multipart::read(std::span<char> into) noexcept {
  const auto got = piece();
  if (!got) return std::unexpected(got.error());
  const std::size_t size = std::min(got->size(), into.size());
  memcpy(into.data(), got->data(), size);
  left_ = {got->data() + size, got->size() - size};
  return size;
}

std::expected<std::string_view, Error> Multipart::read_all(std::span<char> into) noexcept {
  std::size_t size = 0;
  for (;;) {
    const auto got = piece();
    if (!got && got.error() == ErrorCode::end_of_stream) return std::string_view(into.data(), size);
    if (!got) return std::unexpected(got.error());
    if (got->size() > into.size() - size) return refuse(413);
    memcpy(into.data() + size, got->data(), got->size());
    size += got->size();
  }
}

}  // namespace coir::http
