// A transfer's connection: one that rests, or a new one, through a proxy or not. Declared in client/transfer.h.
#include <coir/format.h>
#include <coir/http/client.h>
#include <netinet/in.h>

#include "client/transfer.h"

namespace coir::http::detail {

static_assert(static_cast<Phase>(Dialler::Step::tls) == Phase::tls &&
              static_cast<Phase>(Dialler::Step::first_byte) == Phase::first_byte);

// write_key says what a connection is good for, in `room`: "https://host:port", through which proxy, or to which address.
std::string_view Transfer::write_key() noexcept {
  Formatter key(room);
  key.add(url.secure ? "https " : "http ");
  // All that http says to a proxy is the proxy's own to read.
  if (!proxy || url.secure) key.add(url.host, " ", url.port);
  if (proxy) key.add(" by ", proxy->host, " ", proxy->port);
  // Names of hosts are the same in capitals; credentials and the files of Unix sockets are not.
  for (char& c : room.first(std::min(key.needed(), room.size()))) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  if (proxy) key.add(" ", proxy->user_info);
  if (request->to != nullptr) {
    key.add(" at ");
    char text[Address::kMaxText];
    key.add(request->to->format(text));
    // A link-local address is another machine's on each interface, and its text does not tell which.
    if (request->to->family() == Address::Family::ipv6)
      key.add("%", reinterpret_cast<const sockaddr_in6*>(request->to->get())->sin6_scope_id);
  }
  return key.fits() ? key.text() : std::string_view();
}

Transfer::Outcome Transfer::connect() noexcept {
  const std::string_view key = write_key();
  if (key.empty()) return std::unexpected(Error{ErrorCode::limit});
  if (!fresh) connection = core.pool.take(key);
  if (connection != nullptr) {
    goes_over(connection->stream, true);
    return {};
  }
  auto made = core.pool.make(key);
  if (!made) return std::unexpected(made.error());
  connection = *made;
  goes_over(connection->stream);
  const Timeouts& times = core.options.timeouts;
  Dialler dialler{stream(), {times.resolve, times.connect, times.tls, deadline}};
  const auto dialled = dial(dialler);
  return dialled ? dialled : std::unexpected(of(static_cast<Phase>(dialler.step), dialled.error()));
}

Transfer::Outcome Transfer::dial(Dialler& dialler) noexcept {
  if (auto reached = reach(dialler); !reached) return reached;
  if (proxy && (url.secure || tunnels)) {
    const auto opened = dialler.tunnel(*this, url, proxy->user_info, pace());
    answers = answer_to_method();
    if (!opened) return opened;
  }
  if (!url.secure) return {};
#if COIR_TLS
  const auto context = core.trust(deadline);
  if (!context) return std::unexpected(context.error());
  return dialler.begin_tls(*context, url.host);
#else
  return std::unexpected(Error{ErrorCode::unsupported});
#endif
}

// reach connects to the server or the proxy.
[[gnu::noinline]] Transfer::Outcome Transfer::reach(Dialler& dialler) noexcept {
  const ClientGuard* const guard = core.options.guard;
  if (request->to != nullptr) {
    if (guard != nullptr && !guard->admits_address(*guard, url.host, *request->to))
      return std::unexpected(client_error(ErrorCode::invalid, ClientFault::not_admitted));
    return dialler.connect(*request->to);
  }
  const Url& server = proxy ? *proxy : url;
  auto found = dialler.resolve(server.host, server.port);
  if (!found) return std::unexpected(found.error());
  if (auto admitted = admit(*found); !admitted) return admitted;
  return dialler.connect(*found);
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

}  // namespace coir::http::detail
