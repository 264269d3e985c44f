#include "outbound/dialler.h"

#include <coir/tcp.h>
#include <string.h>
#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir {

Dialler::Outcome Dialler::dial(std::string_view host, std::uint16_t port, const TlsContext* tls) noexcept {
  const auto found = resolve(host, port);
  if (!found) return std::unexpected(found.error());
  auto made = connect(*found);
  return made && tls != nullptr ? begin_tls(*tls, host) : made;
}

std::expected<Addresses, Error> Dialler::resolve(std::string_view host, std::uint16_t port) noexcept {
  return coir::resolve(host, port, begin(Step::resolve, times.resolve));
}

[[gnu::noinline]] Dialler::Outcome Dialler::connect(const Addresses& to) noexcept {
  return takes(coir::connect(to, begin(Step::connect, times.connect)));
}

[[gnu::noinline]] Dialler::Outcome Dialler::connect(const Address& to) noexcept {
  return takes(TcpStream::connect(to, begin(Step::connect, times.connect)));
}

Dialler::Outcome Dialler::takes(std::expected<TcpStream, Error>&& tcp) noexcept {
  if (!tcp) return std::unexpected(tcp.error());
  stream = Stream(std::move(*tcp));
  return {};
}

[[gnu::noinline]] Dialler::Outcome Dialler::begin_tls(const TlsContext& context, std::string_view host) noexcept {
  const Deadline in_time = begin(Step::tls, times.tls);
#if COIR_TLS
  char name[256];
  if (host.size() >= sizeof name) return std::unexpected(Error{ErrorCode::invalid});
  memcpy(name, host.data(), host.size());
  name[host.size()] = '\0';
  if (auto begun = stream.begin_tls(context, name, in_time); !begun) return begun;
  return stream.handshake();
#else
  static_cast<void>(context), static_cast<void>(host), static_cast<void>(in_time);
  return std::unexpected(Error{ErrorCode::unsupported});
#endif
}

}  // namespace coir
