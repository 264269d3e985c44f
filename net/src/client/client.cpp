#include <coir/http/client.h>

#include <coir/detail/accounts.h>
#include <coir/detail/fatal.h>
#include <coir/http/wire/query.h>
#include <string.h>

#include <utility>

#include "base/charged.h"
#include "client/transfer.h"
#include "http/text/characters.h"

namespace coir::http {

namespace detail {

ClientCore::ClientCore(const ClientOptions& given) noexcept
    : options(given),
      pool({.most_resting = std::min(given.max_resting, given.max_connections),
            .idle_time = given.idle_time,
            .most_open = std::max(given.max_connections, 1u)}),
      places_(std::max(given.max_connections, 1u)) {
  if (given.proxy_by_environment) proxies.read_environment();
}

ClientCore::~ClientCore() {
  pool.close_resting(SIZE_MAX, true);
  if (pool.open() != 0) coir::detail::fatal("an http::Client is destroyed while a Response of its is open");
}

std::expected<void, Error> ClientCore::enter(Deadline deadline) noexcept {
#if COIR_NO_ASYNC
  static_cast<void>(deadline);
  if (places_ == 0) return std::unexpected(Error{ErrorCode::limit});
  --places_;
  return {};
#else
  auto entered = places_.acquire(deadline);
  // On a plain thread of a build with one worker nobody else could give a place back meanwhile.
  if (!entered && entered.error() == ErrorCode::unsupported) return std::unexpected(Error{ErrorCode::limit});
  return entered;
#endif
}

void ClientCore::leave() noexcept {
#if COIR_NO_ASYNC
  ++places_;
#else
  places_.release();
#endif
}

}  // namespace detail

Response::~Response() {
  if (transfer_ != nullptr) detail::Transfer::destroy(transfer_);
}

int Response::status() const noexcept {
  return transfer_->response.status;
}
std::string_view Response::reason() const noexcept {
  return transfer_->response.reason;
}
std::span<const Header> Response::headers() const noexcept {
  return transfer_->response.headers;
}
std::string_view Response::header(std::string_view name) const noexcept {
  return transfer_->response.header(name);
}
std::string_view Response::url() const noexcept {
  return transfer_->url_text;
}

std::optional<std::uint64_t> Response::content_length() const noexcept {
  const ParsedResponse& response = transfer_->response;
  if (transfer_->coded) return {};
  if (response.end == ContentEnd::length || (response.end == ContentEnd::none && response.content_length != 0)) {
    return response.content_length;
  }
  if (response.end == ContentEnd::none && response.header("Content-Length").data() != nullptr) return 0;
  return {};
}

std::optional<ContentRange> Response::content_range() const noexcept {
  std::string_view text = header("Content-Range");
  if (!begins_ignoring_case(text, "bytes ")) return {};
  text.remove_prefix(6);
  const std::string_view range = until(text, '/');
  const std::string_view lower = until(range, '-');
  if (range.size() == text.size() || lower.size() == range.size()) return {};
  const auto first = parse_integer(lower);
  const auto last = parse_integer(after(range, lower.size() + 1));
  if (!first || !last || *first < 0 || *last < *first) return {};
  ContentRange answer{static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*last), {}};
  const std::string_view whole = after(text, range.size() + 1);
  if (whole == "*") return answer;
  const auto size = parse_integer(whole);
  if (!size || *size <= *last) return {};
  answer.size = static_cast<std::uint64_t>(*size);
  return answer;
}

std::expected<void, Error> Response::expect_success() const noexcept {
  if (status() >= 200 && status() < 300) return {};
  return std::unexpected(status_error(status()));
}

std::expected<std::size_t, Error> Response::read(std::span<char> into) noexcept {
  return transfer_->read_content(into);
}

std::expected<std::string_view, Error> Response::text(std::size_t most) noexcept {
  Buffer& collected = transfer_->collected;
  // A call behind a wait in vain goes on where that one was.
  std::size_t& size = transfer_->collected_bytes;
  if (const auto length = content_length(); length && *length > most) return std::unexpected(Error{ErrorCode::limit});
  for (;;) {
    if (size == collected.size() && !transfer_->has_ended()) {
      const auto length = content_length();
      auto grown = length && size == 0 ? Buffer::take(static_cast<std::size_t>(*length)) : Buffer::take(size + 1);
      if (!grown) return std::unexpected(grown.error());
      if (size != 0) memcpy(grown->data(), collected.data(), size);
      collected = std::move(*grown);
    }
    const auto got = transfer_->has_ended() ? std::unexpected(Error{ErrorCode::end_of_stream})
                                            : read(collected.bytes().subspan(size));
    if (!got && got.error() == ErrorCode::end_of_stream) {
      return std::string_view(collected.data(), std::exchange(size, 0));
    }
    if (!got) return std::unexpected(got.error());
    size += *got;
    if (size > most) return std::unexpected(Error{ErrorCode::limit});
  }
}

std::expected<Client, Error> Client::create(const ClientOptions& options) noexcept {
  coir::detail::add_phrase(phrase_of_fault);
  auto* const core = construct_charged<detail::ClientCore>(account::http, options);
  if (core == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return Client(core);
}

Client::~Client() {
  destroy_charged(account::http, core_);
}

std::expected<Response, Error> Client::request(const ClientRequest& request) noexcept {
  auto transfer = detail::Transfer::perform(*core_, request);
  if (!transfer) return std::unexpected(transfer.error());
  return Response(*transfer);
}

void Client::close_resting() noexcept {
  core_->pool.close_resting(SIZE_MAX, true);
}
std::size_t Client::resting() const noexcept {
  return core_->pool.resting();
}
std::size_t Client::open() const noexcept {
  return core_->pool.open();
}

}  // namespace coir::http
