// A live feed over sockets, as behind a websocket: each client's handler is one fiber that waits, in one wait, for what
// its client sends, for what is published, and for the time to ask whether the client is still there. Nothing polls,
// and a client that reads slowly is given the latest readings, without holding up the others.
//
// A message is a line. The server sends "reading N" and "ping", a client "pong" and "bye".

#include <coir/broadcast.h>
#include <coir/every.h>
#include <coir/fiber.h>
#include <coir/net/tcp.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <stdio.h>
#include <string.h>

#include <iterator>
#include <string_view>

using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, coir::Error>;

constexpr auto kSilence = 100ms;  // after which a client is asked
constexpr int kMostPings = 3;     // without an answer

// Lines cuts what a socket brings into lines.
class Lines {
 public:
  // fill reads once. Errors: TcpStream::read's; limit for a line that is too long.
  Outcome fill(coir::TcpStream& from, coir::Deadline deadline = coir::Deadline::never()) {
    memmove(bytes_, bytes_ + taken_, size_ -= taken_);
    taken_ = 0;
    if (size_ == sizeof bytes_) return std::unexpected(coir::Error(coir::ErrorCode::limit));
    const auto n = from.read({bytes_ + size_, sizeof bytes_ - size_}, deadline);
    if (!n) return std::unexpected(n.error());
    size_ += *n;
    return {};
  }

  // next takes the next whole line, which is valid until the next fill; false when there is none.
  bool next(std::string_view& line) {
    const std::string_view rest(bytes_ + taken_, size_ - taken_);
    const std::size_t length = rest.find('\n');
    if (length == rest.npos) return false;
    line = rest.substr(0, length);
    taken_ += length + 1;
    return true;
  }

 private:
  char bytes_[64];
  std::size_t size_ = 0;
  std::size_t taken_ = 0;
};

Outcome send_reading(coir::TcpStream& client, int reading) {
  char text[32];
  const int length = snprintf(text, sizeof text, "reading %d\n", reading);
  return client.write({text, static_cast<std::size_t>(length)}, coir::Deadline::after(5s));
}

// hear takes in what the client has sent. A descriptor tells of news once, so that all of it is read before it is
// waited for again. False: the client says goodbye.
std::expected<bool, coir::Error> hear(coir::TcpStream& client, Lines& lines) {
  client.mark_readable();
  do {
    const Outcome filled = lines.fill(client, coir::Deadline::now());
    if (!filled && filled.error() == coir::ErrorCode::timed_out) break;
    if (!filled && filled.error() == coir::ErrorCode::end_of_stream) return false;
    if (!filled) return std::unexpected(filled.error());
    for (std::string_view line; lines.next(line);) {
      if (line == "bye") return false;
    }
  } while (!client.drained());
  return true;
}

// serve is the handler of one client. It ends when the client or the feed does, or with what was wrong.
Outcome serve(coir::TcpStream& client, coir::Broadcast<int>& feed) {
  coir::Subscription<int> readings(feed, {.capacity = 8, .when_slow = coir::WhenSlow::drop_oldest});
  Lines lines;
  int pings = 0;
  coir::Deadline silent = coir::Deadline::after(kSilence);
  for (;;) {
    int reading = 0;
    const auto won = coir::select(
        {coir::Case::readable(client.fd()), coir::Case::receive(readings, reading), coir::Case::at(silent)});
    if (!won) return std::unexpected(won.error());
    switch (won->index) {
      case 0: {
        const auto stays = hear(client, lines);
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
  while (auto accepted = listener.accept()) {
    coir::Fiber handler = coir::spawn({.name = "handler"}, [client = std::move(*accepted), &feed]() mutable {
      const Outcome served = serve(client, feed);
      if (!served && served.error() == coir::ErrorCode::timed_out)
        printf("a client that does not answer is given up\n");
    });
  }
}

// Visitor is a client. It leaves when it has seen enough, or when the server has given it up.
struct Visitor {
  int enough;
  bool answers;
  int seen = 0;

  Outcome visit(const coir::Address& server) {
    auto stream = coir::TcpStream::connect(server, coir::Deadline::after(5s));
    if (!stream) return std::unexpected(stream.error());
    for (Lines lines;;) {
      if (auto filled = lines.fill(*stream); !filled) return filled;
      for (std::string_view line; lines.next(line);) {
        if (line.starts_with("reading ") && ++seen == enough) return stream->write("bye\n");
        if (line == "ping" && answers) {
          if (auto sent = stream->write("pong\n"); !sent) return sent;
        }
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
