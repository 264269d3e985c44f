// A transfer's connection: one that rests, or a new one, through a proxy or not. Declared in client/transfer.h.
#include <coir/format.h>
#include <coir/http/client_guard.h>
#include <coir/net/connect.h>
#include <string.h>

#include "client/basic_field.h"
#include "client/transfer.h"
#include "http/message/characters.h"

namespace coir::http::detail {

// write_key says what a connection is good for, in `room`: "https://host:port", through which proxy, or to which address.
std::string_view Transfer::write_key() noexcept {
  Formatter key(room);
  key.add(url.secure ? "https " : "http ");
  // All that http says to a proxy is the proxy's own to read.
  if (!proxy || url.secure) key.add(url.host, " ", url.port);
  if (proxy) key.add(" by ", proxy->host, " ", proxy->port, " ", proxy->user_info);
  if (request->to != nullptr) {
    key.add(" at ");
    char text[Address::kMaxText];
    key.add(request->to->format(text));
  }
  const std::size_t size = std::min(key.needed(), room.size());
  for (char& c : room.first(size)) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return key.fits() ? std::string_view(room.data(), size) : std::string_view();
}

Transfer::Outcome Transfer::connect() noexcept {
  const std::string_view key = write_key();
  if (key.empty()) return std::unexpected(Error{ErrorCode::limit});
  if (!fresh) connection = core.pool.take(key);
  if (connection != nullptr) {
    goes_over(connection->stream);
    return {};
  }
  auto made = core.pool.make(key);
  if (!made) return std::unexpected(made.error());
  connection = *made;
  goes_over(connection->stream);
  if (auto dialled = dial(*connection); !dialled) return dialled;
  if (proxy && (url.secure || tunnels)) {
    if (auto opened = tunnel(); !opened) return opened;
  }
  return url.secure ? begin_tls() : Outcome();
}

[[gnu::noinline]] Transfer::Outcome Transfer::dial(PooledConnection& to) noexcept {
  const auto take = [&](std::expected<TcpStream, Error>&& tcp) -> Outcome {
    if (!tcp) return std::unexpected(of(Phase::connect, tcp.error()));
    to.stream = Stream(std::move(*tcp));
    return {};
  };
  const ClientGuard* const guard = core.options.guard;
  if (request->to != nullptr && guard != nullptr && !guard->admits_address(*guard, url.host, *request->to))
    return std::unexpected(client_error(ErrorCode::invalid, ClientFault::not_admitted));
  if (request->to != nullptr) return take(TcpStream::connect(*request->to, until(Phase::connect)));
  const Url& server = proxy ? *proxy : url;
  auto found = resolve(server.host, server.port, until(Phase::resolve));
  if (!found) return std::unexpected(of(Phase::resolve, found.error()));
  if (auto admitted = admit(*found); !admitted) return admitted;
  return take(coir::connect(*found, until(Phase::connect)));
}

// admit leaves the addresses that the guard admits.
[[gnu::noinline]] Transfer::Outcome Transfer::admit(Addresses& found) const noexcept {
  const ClientGuard* const guard = core.options.guard;
  if (guard == nullptr) return {};
  Addresses admitted;
  admitted.set_port(url.port);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Address address = found[i];
    if (guard->admits_address(*guard, url.host, address)) admitted.add(address.get());
  }
  if (admitted.size() == 0) return std::unexpected(client_error(ErrorCode::invalid, ClientFault::not_admitted));
  found = admitted;
  return {};
}

// tunnel has the proxy connect to the server. What the proxy sends behind its consent before TLS has begun is no
// server's.
[[gnu::noinline]] Transfer::Outcome Transfer::tunnel() noexcept {
  const bool is_v6 = url.host.find(':') != url.host.npos;
  char host[270];
  const std::string_view authority = format(host, is_v6 ? "[" : "", url.host, is_v6 ? "]:" : ":", url.port);
  Formatter head(room);
  head.add("CONNECT ", authority, " HTTP/1.1\r\nHost: ", authority, "\r\n");
  if (!add_basic_field(head, "Proxy-Authorization", proxy->user_info))
    return std::unexpected(Error{ErrorCode::invalid});
  head.add("\r\n");
  if (!head.fits()) return std::unexpected(Error{ErrorCode::limit});
  if (auto sent = send_beginning(head.text(), {}, pace()); !sent) return std::unexpected(of(Phase::send, sent.error()));
  // Of the answer only the head is read.
  answers = AnswerTo::connect;
  if (auto read = read_head(until(Phase::connect)); !read) return std::unexpected(of(Phase::first_byte, read.error()));
  answers = answer_to_method();
  const bool consents = response.status >= 200 && response.status < 300 && have == begin;
  begin_anew();
  if (consents) return {};
  return std::unexpected(client_error(ErrorCode::protocol, ClientFault::proxy_refused));
}

#if COIR_TLS
[[gnu::noinline]] Transfer::Outcome Transfer::begin_tls() noexcept {
  const auto context = core.trust();
  if (!context) return std::unexpected(context.error());
  char name[256];
  if (url.host.size() >= sizeof name) return std::unexpected(Error{ErrorCode::invalid});
  memcpy(name, url.host.data(), url.host.size());
  name[url.host.size()] = '\0';
  const Deadline in_time = until(Phase::tls);
  if (auto begun = stream().begin_tls(*context, name, in_time); !begun) return begun;
  if (auto shaken = stream().handshake(); !shaken) return std::unexpected(of(Phase::tls, shaken.error()));
  return {};
}
#else
Transfer::Outcome Transfer::begin_tls() noexcept {
  return std::unexpected(Error{ErrorCode::unsupported});
}
#endif

}  // namespace coir::http::detail
