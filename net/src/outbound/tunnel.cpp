// How a proxy is asked to lead on to a server. Declared in outbound/dialler.h.
#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <coir/http/wire/url.h>

#include "http/text/base64.h"
#include "outbound/basic_field.h"
#include "outbound/dialler.h"
#include "outbound/exchange.h"
#include "outbound/fault.h"

namespace coir {

// Bytes that the proxy sends behind its consent, before TLS has begun, do not come from the server.
[[gnu::noinline]] Dialler::Outcome Dialler::tunnel(http::OutboundExchange& by, const http::Url& server,
                                                   std::string_view user_info, http::Pace pace) noexcept {
  using namespace http;
  const bool is_v6 = server.host.find(':') != server.host.npos;
  char host[270];
  const std::string_view authority = format(host, is_v6 ? "[" : "", server.host, is_v6 ? "]:" : ":", server.port);
  Formatter head(by.room);
  head.add("CONNECT ", authority, " HTTP/1.1\r\nHost: ", authority, "\r\n");
  if (!add_basic_field(head, "Proxy-Authorization", user_info)) return std::unexpected(Error{ErrorCode::invalid});
  head.add("\r\n");
  if (!head.fits()) return std::unexpected(Error{ErrorCode::limit});
  step = Step::send;
  if (auto sent = by.send_beginning(head.text(), {}, pace); !sent) return sent;
  // Only the head of the answer is read.
  by.answers = AnswerTo::connect;
  if (auto read = by.read_head(begin(Step::first_byte, times.connect)); !read) return read;
  const bool consents = by.response.status >= 200 && by.response.status < 300 && by.have == by.begin;
  by.begin_anew();
  if (consents) return {};
  return std::unexpected(client_error(ErrorCode::protocol, ClientFault::proxy_refused));
}

namespace http {

[[gnu::noinline]] bool add_basic_field(Formatter& head, std::string_view name, std::string_view user_info) noexcept {
  if (user_info.data() == nullptr) return true;
  char plain[192];
  const std::string_view user = user_info.substr(0, user_info.find(':'));
  const auto decoded = decode_percent(user, plain);
  if (!decoded) return false;
  std::size_t size = decoded->size();
  if (size == sizeof plain) return false;
  plain[size++] = ':';
  if (user.size() < user_info.size()) {
    const auto password = decode_percent(user_info.substr(user.size() + 1), std::span(plain).subspan(size));
    if (!password) return false;
    size += password->size();
  }
  char text[base64_bytes(sizeof plain)];
  head.add(name, ": Basic ", encode_base64({plain, size}, text), "\r\n");
  return true;
}

}  // namespace http
}  // namespace coir
