// A client's way to its server: names, addresses, connection, handshake.
#include <coir/tcp.h>
#include <coir/tls.h>
#include <string.h>

namespace coir {
namespace {

// As long as a name can be, in the DNS and in mbedTLS.
constexpr std::size_t kNameBytes = 256;

}  // namespace

std::expected<TlsStream, Error> connect_tls(std::string_view host, std::uint16_t port, const TlsContext& context,
                                            const TlsTicket& ticket, Deadline deadline) noexcept {
  char name[kNameBytes];
  if (host.size() >= sizeof name || host.find('\0') != host.npos) return std::unexpected(Error{ErrorCode::invalid});
  memcpy(name, host.data(), host.size());
  name[host.size()] = '\0';
  auto stream = connect(host, port, deadline);
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
