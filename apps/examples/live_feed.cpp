// A live feed over sockets, as behind a websocket: each client's handler is one fiber that waits, in one wait, for what
// its client sends, for what is published, and for the time to ask whether the client is still there. Nothing polls,
// and a client that reads slowly is given the latest readings, without holding up the others.
//
// A message is a line. The server sends "reading N" and "ping", a client "pong" and "bye".

#include <coir/broadcast.h>
#include <coir/every.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/stream_lines.h>
#include <coir/tcp.h>
#include <stdio.h>

#include <iterator>
#include <string_view>

using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, coir::Error>;

constexpr auto kSilence = 100ms;  // after which a client is asked
constexpr int kMostPings = 3;     // without an answer

Outcome send_reading(coir::TcpStream& client, int reading) {
  char text[32];
  const int length = snprintf(text, sizeof text, "reading %d\n", reading);
  return client.write({text, static_cast<std::size_t>(length)}, coir::Deadline::after(5s));
}

// hear takes in what the client has sent. False: the client says goodbye, or has gone.
std::expected<bool, coir::Error> hear(coir::StreamLines<coir::TcpStream>& lines) {
  for (;;) {
    const auto line = lines.next(coir::Deadline::now());
    if (line && *line == "bye") return false;
    if (line) continue;
    if (line.error() == coir::ErrorCode::timed_out) return true;
    if (line.error() == coir::ErrorCode::end_of_stream) return false;
    return std::unexpected(line.error());
  }
}

// serve is the handler of one client. It ends when the client or the feed does, or with what was wrong.
Outcome serve(coir::TcpStream& client, coir::Broadcast<int>& feed) {
  coir::Subscription<int> readings(feed, {.capacity = 8, .when_slow = coir::WhenSlow::drop_oldest});
  char room[64];
  coir::StreamLines lines(client, room);
  int pings = 0;
  coir::Deadline silent = coir::Deadline::after(kSilence);
  for (;;) {
    int reading = 0;
    const auto won = coir::select(
        {coir::Case::readable(client.fd()), coir::Case::receive(readings, reading), coir::Case::at(silent)});
    if (!won) return std::unexpected(won.error());
    switch (won->index) {
      case 0: {
        const auto stays = hear(lines);
        if (!stays) return std::unexpected(stays.error());
        if (!*stays) return {};
        pings = 0;
        break;
      }
      case 1:
        if (won->closed) return {};
        if (auto sent = send_reading(client, reading); !sent) return sent;
        continue;  // which says nothing of the client
      default:
        if (pings++ == kMostPings) return std::unexpected(coir::Error(coir::ErrorCode::timed_out));
        if (auto sent = client.write("ping\n", coir::Deadline::after(5s)); !sent) return sent;
    }
    silent = coir::Deadline::after(kSilence);
  }
}

void accept_all(coir::TcpListener& listener, coir::Broadcast<int>& feed) {
  static_cast<void>(coir::accept_each(listener, [&feed](coir::TcpStream accepted) {
    coir::Fiber handler = coir::spawn({.name = "handler"}, [client = std::move(accepted), &feed]() mutable {
      const Outcome served = serve(client, feed);
      if (!served && served.error() == coir::ErrorCode::timed_out)
        printf("a client that does not answer is given up\n");
    });
  }));
}

// Visitor is a client. It leaves when it has seen enough, or when the server has given it up.
struct Visitor {
  int enough;
  bool answers;
  int seen = 0;

  Outcome visit(const coir::Address& server) {
    auto stream = coir::TcpStream::connect(server, coir::Deadline::after(5s));
    if (!stream) return std::unexpected(stream.error());
    char room[64];
    coir::StreamLines lines(*stream, room);
    for (;;) {
      const auto line = lines.next();
      if (!line) return std::unexpected(line.error());
      if (line->starts_with("reading ") && ++seen == enough) return stream->write("bye\n");
      if (*line == "ping" && answers) {
        if (auto sent = stream->write("pong\n"); !sent) return sent;
      }
    }
  }
};

}  // namespace

int main() {
  return coir::run([]() -> Outcome {
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    if (!listener) return std::unexpected(listener.error());
    coir::Broadcast<int> feed;
    coir::Nursery service;
    coir::Fiber accepting = service.spawn({.name = "accept"}, [&] { accept_all(*listener, feed); });
    int reading = 0;
    auto sensor = service.spawn({.name = "sensor"},
                                [&] { return coir::every(5ms, [&] { static_cast<void>(feed.publish(++reading)); }); });

    Visitor visitors[] = {
        {.enough = 5, .answers = true}, {.enough = 40, .answers = true}, {.enough = -1, .answers = false}};
    Outcome ends[std::size(visitors)];
    {
      coir::Nursery visits;
      for (std::size_t i = 0; i < std::size(visitors); ++i) {
        coir::Fiber visit =
            visits.spawn({.name = "visitor"}, [&, i] { ends[i] = visitors[i].visit(listener->local_address()); });
      }
    }
    for (std::size_t i = 0; i < std::size(visitors); ++i) {
      if (ends[i]) {
        printf("visitor %zu has left after %d readings\n", i + 1, visitors[i].seen);
      } else {
        printf("visitor %zu: %s\n", i + 1, coir::describe(ends[i].error()));
      }
    }
    static_cast<void>(sensor.cancel());
    static_cast<void>(sensor.await());
    static_cast<void>(accepting.cancel());
    return {};
  });
}
