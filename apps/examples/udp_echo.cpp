// An echo server by UDP, and a client that asks it at another of its addresses: the answer comes from there, or the
// client, which is connected, would not hear it. A datagram that was cut off is reported and not echoed. With fibers or without.

#include <coir/format.h>
#include <coir/net/datagram.h>
#include <coir/print.h>
#include <coir/program.h>

using namespace std::chrono_literals;
using coir::Datagram;
using coir::DatagramSocket;
using coir::Deadline;
using coir::Error;

namespace {

// echo answers one datagram.
std::expected<void, Error> echo(DatagramSocket& server, Deadline deadline) {
  char buffer[16], line[40];
  const std::expected<Datagram, Error> got = server.receive_from(buffer, deadline);
  if (!got) return std::unexpected(got.error());
  if (!got->truncated()) return server.answer(got->bytes, *got, deadline);
  return server.answer(coir::format(line, "too long by ", got->lost_bytes), *got, deadline);
}

// ask sends a datagram and prints the answer. Datagrams get lost elsewhere than here: it would send again then.
std::expected<void, Error> ask(DatagramSocket& client, DatagramSocket& server, std::string_view text) {
  const Deadline deadline = Deadline::after(5s);
  if (auto sent = client.send(text, deadline); !sent) return sent;
  if (auto echoed = echo(server, deadline); !echoed) return echoed;
  char buffer[64];
  const auto answer = client.receive_from(buffer, deadline);
  if (!answer) return std::unexpected(answer.error());
  coir::print(answer->bytes, "\n");
  return {};
}

int run() {
  auto server = DatagramSocket::bind(*coir::Address::parse("0.0.0.0:0"));
  if (!server) return 1;
  const auto at = server->local_address();
  auto client = DatagramSocket::connect(coir::Address::parse("127.0.0.2:0")->with_port(at ? at->port() : 0));
  if (!client) return 1;
  for (const std::string_view text : {"coconut", "fibre", "a rope of coconut fibre"}) {
    if (!ask(*client, *server, text)) return 1;
  }
  // The server is gone, which only a connected socket learns.
  server->close();
  char buffer[16];
  static_cast<void>(client->send("anybody?"));
  const auto answer = client->receive_from(buffer, Deadline::after(5s));
  if (!answer) coir::print(answer.error(), "\n");
  return answer ? 1 : 0;
}

}  // namespace

int main() {
  return coir::run_program(run);
}
