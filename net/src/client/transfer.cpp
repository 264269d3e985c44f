#include "client/transfer.h"

#include <coir/detail/accounts.h>
#include <coir/http/client.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "base/charged.h"
#include "http/text/characters.h"

namespace coir::http::detail {
namespace {

bool is_idempotent(std::string_view method) noexcept {
  for (const std::string_view each : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    if (method == each) return true;
  }
  return false;
}

// is_the_clients tells of fields that say where the content ends, or what the connection is for.
bool is_the_clients(std::string_view name) noexcept {
  for (const std::string_view each :
       {"Content-Length", "Transfer-Encoding", "Connection", "Expect", "TE", "Upgrade", "Trailer", "Keep-Alive"}) {
    if (equals_ignoring_case(name, each)) return true;
  }
  return false;
}

bool is_field_value(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return is(c, kFieldControl); });
}

}  // namespace

Transfer::~Transfer() {
  end_decoding();
  // Content that was not read to its end was cut off on purpose.
  close(false);
  if (in_place) core.leave();
}

Transfer* Transfer::make(ClientCore& core, const ClientRequest& request) noexcept {
  void* const memory = take_charged(account::http, sizeof(Transfer) + request.url.size());
  if (memory == nullptr) return nullptr;
  auto* const transfer = ::new (memory) Transfer(core, request);
  // The response tells the address, when the request is gone.
  char* const text = reinterpret_cast<char*>(transfer + 1);
  if (!request.url.empty()) memcpy(text, request.url.data(), request.url.size());
  transfer->url_text = {text, request.url.size()};
  transfer->bytes_behind = request.url.size();
  return transfer;
}

std::expected<Transfer*, Error> Transfer::perform(ClientCore& core, const ClientRequest& request) noexcept {
  auto* const transfer = make(core, request);
  if (transfer == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  if (auto done = transfer->run(); !done) {
    destroy(transfer);
    return std::unexpected(done.error());
  }
  return transfer;
}

std::expected<Transfer*, Error> Transfer::start(ClientCore& core, const ClientRequest& request) noexcept {
  auto* const transfer = make(core, request);
  if (transfer == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  if (auto asked = transfer->ask_alone(); !asked) {
    destroy(transfer);
    return std::unexpected(asked.error());
  }
  return transfer;
}

void Transfer::destroy(Transfer* transfer) noexcept {
  const std::size_t bytes = sizeof(Transfer) + transfer->bytes_behind;
  transfer->~Transfer();
  give_charged(account::http, transfer, bytes);
}

SentTransfer Transfer::leave_sent(Transfer* transfer) noexcept {
  const SentTransfer sent{&transfer->core, std::exchange(transfer->connection, nullptr), transfer->answer_by,
                          transfer->asks_coding};
  transfer->in_place = false;
  destroy(transfer);
  return sent;
}

std::expected<Transfer*, Error> Transfer::take_up(SentTransfer& sent, const ClientRequest& request) noexcept {
  auto* const transfer = make(*sent.core, request);
  if (transfer == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  transfer->request = nullptr;
  transfer->answers = transfer->answer_to_method();
  transfer->idempotent = is_idempotent(request.method);
  transfer->in_place = transfer->sent_any = transfer->sent_whole = true;
  transfer->answer_by = sent.answer_by;
  transfer->asks_coding = sent.asks_coding;
  transfer->connection = std::exchange(sent.connection, nullptr);
  transfer->goes_over(transfer->connection->stream, transfer->connection->reused);
  return transfer;
}

void SentTransfer::drop() noexcept {
  if (connection == nullptr) return;
  ConnectionPool::close(*std::exchange(connection, nullptr), false);
  core->leave();
}

Transfer::Outcome Transfer::run() noexcept {
  if (auto good = check(); !good) return good;
  for (;;) {
    if (auto chosen = choose_way(); !chosen) return chosen;
    if (auto answered = exchange(); !answered) return answered;
    if (leaves_out_expect()) continue;
    const auto goes_on = follow();
    if (!goes_on) return std::unexpected(goes_on.error());
    if (!*goes_on) break;
  }
  request = nullptr;
  return {};
}

Transfer::Outcome Transfer::choose_way() noexcept {
  const auto parsed = parse_url(url_text);
  if (!parsed) return std::unexpected(parsed.error());
  url = *parsed;
  if (redirects > 0 && !drops_secrets && url.user_info.data() == nullptr) {
    // Still the origin that the caller's credentials are for.
    if (const auto first = parse_url(request->url)) url.user_info = first->user_info;
  }
  if (url.secure && !kTls) return std::unexpected(Error{ErrorCode::unsupported});
  proxy.reset();
  if (const ClientGuard* const guard = core.options.guard; guard != nullptr) {
    if (guard->admits_host(*guard, url.host, url.port)) return {};
    return std::unexpected(client_error(ErrorCode::invalid, ClientFault::not_admitted));
  }
  if (request->to != nullptr) return {};
  const auto chosen = core.proxies.choose(url);
  if (!chosen) return std::unexpected(chosen.error());
  proxy = *chosen;
  return {};
}

Transfer::Outcome Transfer::check() const noexcept {
  constexpr std::unexpected<Error> kInvalid{ErrorCode::invalid};
  if (!is_token(method) || method == "CONNECT") return kInvalid;
  for (const RequestField& field : request->fields) {
    if (!is_token(field.name) || is_the_clients(field.name) || !is_field_value(field.value)) return kInvalid;
  }
  if (!is_field_value(request->content_type) || !is_field_value(request->if_range)) return kInvalid;
  if (request->upload != nullptr && request->upload->read == nullptr) return kInvalid;
  return {};
}

// exchange sends the request and waits for the head of the response, on a connection that rests or a new one.
Transfer::Outcome Transfer::exchange() noexcept {
  if (!in_place) {
    if (auto entered = core.enter(deadline); !entered) return entered;
    in_place = true;
  }
  auto answered = exchange_once();
  if (!answered && may_retry(answered.error())) {
    close(false);
    fresh = true;  // others that rest have most likely been closed too
    answered = exchange_once();
  }
  return answered;
}

Transfer::Outcome Transfer::exchange_once() noexcept {
  if (auto asked = ask(); !asked) return asked;
  return hear_answer();
}

// ask_alone is run up to the answer.
Transfer::Outcome Transfer::ask_alone() noexcept {
  if (auto good = check(); !good) return good;
  if (auto chosen = choose_way(); !chosen) return chosen;
  if (auto entered = core.enter(deadline); !entered) return entered;
  in_place = true;
  auto asked = ask();
  if (!asked && may_retry(asked.error())) {
    close(false);
    fresh = true;
    asked = ask();
  }
  if (!asked) return asked;
  request = nullptr;
  if (got_head) return {};
  sent_whole = true;
  if (!stream().drained()) {
    if (const auto heard = hear(); !heard) return std::unexpected(of(Phase::first_byte, heard.error()));
  }
  if (have != 0) return {};
  answer_by = until(Phase::first_byte);
  give_room();
  stream().rest();
  return {};
}

Transfer::Outcome Transfer::finish() noexcept {
  if (waits()) {
    if (auto taken = grow(0); !taken) return taken;
    stream().mark_readable();
  }
  return hear_answer();
}

// ask connects and sends. A head that has come before all was sent counts.
Transfer::Outcome Transfer::ask() noexcept {
  begin_anew();
  reusable = cut_short = done = false;
  answers = answer_to_method();
  idempotent = is_idempotent(method);
  left = 0;
  if (room.empty()) {
    if (auto taken = grow(0); !taken) return taken;
  }
  if (auto connected = connect(); !connected) return connected;
  if (auto sent = send(); !sent) {
    // A server that refuses content may have hung up behind its answer, which still counts.
    if (!has_refusal(sent.error(), until(Phase::first_byte))) return sent;
  } else if (got_head) {
    // The server still waits for the content that was announced, or does not: nobody can tell.
    cut_short = true;
  }
  return {};
}

Transfer::Outcome Transfer::hear_answer() noexcept {
  if (!got_head) {
    sent_whole = true;
    if (auto heard = await_head(); !heard) return std::unexpected(of(Phase::first_byte, heard.error()));
  }
  reusable = sent_whole && response.keep_alive;
  return begin_content();
}

// await_head reads the head of the response. As long as nothing has come the buffer is others'.
Transfer::Outcome Transfer::await_head() noexcept {
  const Deadline last = std::min(answer_by, until(Phase::first_byte));
  if (have == 0 && !stream().drained()) {
    const auto heard = hear();
    if (!heard) return std::unexpected(heard.error());
    if (*heard) return {};
  }
  if (have == 0) {
    give_room();
    auto awaited = await(last);
    if (auto taken = grow(0); !taken) return taken;
    if (!awaited) return awaited;
  }
  return read_head(last);
}

void Transfer::give_room() noexcept {
  room = {};
  memory.give();
}

// may_retry: the server had closed a resting connection before it saw the request.
bool Transfer::may_retry(Error error) noexcept {
  return connection != nullptr && may_repeat(error) && rewind_content();
}

bool Transfer::rewind_content() noexcept {
  if (!with_content || request->upload == nullptr) return true;
  return request->upload->rewind != nullptr && request->upload->rewind(*request->upload);
}

void Transfer::let_go() noexcept {
  if (connection == nullptr || !reusable) return close(!cut_short);
  connection->hear_keep_alive(response);
  core.pool.rest(*std::exchange(connection, nullptr));
}

void Transfer::close(bool in_good_order) noexcept {
  if (connection != nullptr) ConnectionPool::close(*std::exchange(connection, nullptr), in_good_order);
}

Deadline Transfer::until(Phase phase) const noexcept {
  const Timeouts& timeouts = core.options.timeouts;
  const std::chrono::milliseconds spans[] = {timeouts.resolve, timeouts.connect,    timeouts.tls,
                                             timeouts.send,    timeouts.first_byte, timeouts.between_bytes};
  return std::min(deadline, Deadline::after(spans[static_cast<std::size_t>(phase)]));
}

}  // namespace coir::http::detail
