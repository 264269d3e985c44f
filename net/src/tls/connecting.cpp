// How a client finds its server and connects to it.
#include <coir/net/resolve.h>
#include <coir/net/tls.h>
#include <coir/net/tls_ticket.h>
#include <string.h>

namespace coir {
namespace {

// As long as a name can be, in the DNS and in mbedTLS.
constexpr std::size_t kNameBytes = 256;

// A share of what is left: an address where nobody answers leaves the others their time.
Deadline share(Deadline deadline, std::size_t shares) noexcept {
  if (deadline.is_never() || shares == 1) return deadline;
  const std::int64_t now = monotonic_ns();
  return deadline.ns() <= now ? deadline : Deadline::at_ns(now + (deadline.ns() - now) / static_cast<int>(shares));
}

std::expected<TcpStream, Error> connect_in_turn(const Addresses& to, Deadline deadline) noexcept {
  for (std::size_t i = 0;; ++i) {
    auto stream = TcpStream::connect(to[i], share(deadline, to.size() - i));
    if (stream || i + 1 == to.size() || stream.error() == ErrorCode::cancelled || deadline.passed()) return stream;
  }
}

}  // namespace

std::expected<TlsStream, Error> connect_tls(std::string_view host, std::uint16_t port, const TlsContext& context,
                                            const TlsTicket& ticket, Deadline deadline) noexcept {
  char name[kNameBytes];
  if (host.size() >= sizeof name || host.find('\0') != host.npos) return std::unexpected(Error{ErrorCode::invalid});
  memcpy(name, host.data(), host.size());
  name[host.size()] = '\0';
  auto found = resolve(host, port, deadline);
  if (!found) return std::unexpected(found.error());
  auto stream = connect_in_turn(*found, deadline);
  if (!stream) return std::unexpected(stream.error());
  return TlsStream::connect(std::move(*stream), context, name, ticket, deadline);
}

std::expected<TlsStream, Error> connect_tls(std::string_view host, std::uint16_t port, const TlsContext& context,
                                            Deadline deadline) noexcept {
  return connect_tls(host, port, context, TlsTicket(), deadline);
}

std::expected<TlsStream, Error> connect_tls(const Address& to, const char* name, const TlsContext& context,
                                            Deadline deadline) noexcept {
  auto stream = TcpStream::connect(to, deadline);
  if (!stream) return std::unexpected(stream.error());
  return TlsStream::connect(std::move(*stream), context, name, deadline);
}

}  // namespace coir
