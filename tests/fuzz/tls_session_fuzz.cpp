// Garbage and broken handshakes at a TLS port end with an error and leave nothing behind. A server that has answered
// answers the next client.

#include <coir/tls.h>
#include <sys/socket.h>

#include "require.h"
#include "tests/support/tls_pair.h"

using namespace coir;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const test::Authority authority;
  static const TlsContext contexts[] = {authority.server(), authority.client()};
  Source source(data, size);
  const bool as_server = source.byte() % 4 != 0;
  const std::string_view said = source.rest();
  {
    test::SocketPair pair;
    // More than a socket holds is of no interest.
    static_cast<void>(::send(pair.client.fd(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    pair.client.shutdown_write();
    const auto stream = as_server
                            ? TlsStream::accept(std::move(pair.server), contexts[0], Deadline::never())
                            : TlsStream::connect(std::move(pair.server), contexts[1], "board.test", Deadline::never());
    require(!stream.has_value());
  }
  require(account::handshakes.used() == 0);
  require(tls_counters().under_way.load() == 0);
  return 0;
}
