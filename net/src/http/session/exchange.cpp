#include <coir/http/exchange.h>

#include "http/connection/connection.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

const Request& Exchange::request() const noexcept {
  return session_.request_;
}

bool Exchange::secure() const noexcept {
  return session_.connection_->stream.secure();
}

std::uint8_t Exchange::listener() const noexcept {
  return session_.connection_->listener;
}

std::expected<Address, Error> Exchange::peer_address() const noexcept {
  return session_.engine_.peer_of(*session_.connection_);
}

const TlsPeer* Exchange::certificate() const noexcept {
  return session_.connection_->stream.client();
}

std::expected<std::size_t, Error> Exchange::read_body(std::span<char> into) noexcept {
  return session_.take_body(into.data(), into.size());
}

void Exchange::set_body_pace(std::chrono::milliseconds timeout, std::uint32_t rate) noexcept {
  session_.body_timeout_ = timeout;
  session_.body_rate_ = rate;
}

std::string_view Exchange::trailer(std::string_view name) const noexcept {
  return session_.trailer(name);
}

std::expected<void, Error> Exchange::add_trailer(std::string_view name, std::string_view value) noexcept {
  return session_.add_trailer(name, value);
}

void Exchange::respond(int status, std::string_view content_type, std::string_view content,
                       std::string_view fields) noexcept {
  session_.answer(status, content_type, content, fields);
}

void Exchange::respond_status(int status, std::string_view fields) noexcept {
  session_.answer_status(status, fields);
}

void Exchange::answer_errors_by(const ErrorLook& look) noexcept {
  session_.own_look_ = look;
  session_.error_look_ = &session_.own_look_;
}

void Exchange::add_fields(std::string_view lines) noexcept {
  session_.add_fields(lines);
}

int Exchange::status() const noexcept {
  return session_.status_;
}

ResponseHead& Exchange::start(int status) noexcept {
  return session_.start(status);
}

std::expected<void, Error> Exchange::begin_fixed(std::uint64_t bytes) noexcept {
  return session_.begin_content(Session::Content::fixed, bytes);
}

std::expected<void, Error> Exchange::begin_chunked() noexcept {
  return session_.begin_content(Session::Content::chunked, 0);
}

std::expected<void, Error> Exchange::begin_empty() noexcept {
  return session_.begin_content(Session::Content::empty, 0);
}

std::expected<void, Error> Exchange::write(std::string_view content) noexcept {
  return session_.write(content);
}

std::expected<void, Error> Exchange::send_file(int file, std::uint64_t offset, std::uint64_t count) noexcept {
  return session_.send_file(file, offset, count);
}

std::expected<void, Error> Exchange::flush() noexcept {
  return session_.flush();
}

bool Exchange::free_descriptor() noexcept {
  return session_.engine_.evict_idle();
}

void Exchange::close_after() noexcept {
  session_.keep_ = false;
}

std::span<char> Exchange::scratch() noexcept {
  session_.hold();
  session_.lends_scratch_ = true;
  return session_.buffers->scratch;
}

void Exchange::release_buffer() noexcept {
  session_.release_buffer();
}

std::span<char> Exchange::path_memory() noexcept {
  session_.hold();
  session_.lends_path_ = true;
  return session_.buffers->path;
}

std::int64_t Exchange::now() noexcept {
  return session_.now();
}

}  // namespace coir::http
