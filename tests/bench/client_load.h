#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace bench {

// Counts is what has become of the connections of a load since its last close(). Each connection is in exactly one of
// the counts but `again`.
struct Counts {
  long open = 0;         // answered, and open still
  long again = 0;        // of these, answered by the last again()
  long refused = 0;      // answered otherwise than 200 the first time, or ended cleanly without an answer
  long closed = 0;       // answered, and then ended cleanly by the server while nothing was asked
  long lost = 0;         // answered, and then reset, or silent or ended when asked again
  long declined = 0;     // answered, and then otherwise than 200 when asked again
  long reset = 0;        // reset or refused by the server's kernel before any answer
  long unanswered = 0;   // connected, and given up while waiting for the first answer
  long unconnected = 0;  // given up while connecting

  static constexpr std::size_t kCounts = 9;
};

// ClientLoad is many keep-alive clients of one HTTP server in one thread: each connects, asks once, reads the answer and
// holds its connection.
class ClientLoad {
 public:
  // A load of at most `most` clients that ask `server` for the path `target`.
  ClientLoad(const sockaddr_in& server, const char* target, std::size_t most);

  // hold opens connections until `count` are open, `window` at a time, so that they fit the server's backlog. It stops
  // early when the server ends, resets or refuses one, or says nothing for five seconds, and gives up what is not
  // answered.
  void hold(long count, long window);

  // flood starts `count` connections at once and waits until all are answered or ended, for `seconds` at most; it gives
  // up the others.
  void flood(long count, long seconds);

  // again asks once more on each open connection, `window` at a time. A request is lost if the server
  // sends nothing for ten seconds.
  void again(long window);

  // look counts the idle connections that the server has ended.
  void look();

  // close ends all connections at once and forgets the counts.
  void close();

  const Counts& counts() const { return counts_; }

 private:
  enum class State : std::uint8_t { unused, connecting, first, idle, again };

  struct Client {
    int fd = -1;
    State state = State::unused;
    bool head_seen = false;
    std::uint16_t status = 0;
    std::uint16_t head_bytes = 0;
    long missing = 0;  // of the body
    char head[500];
  };

  bool outstanding(const Client& client) const { return client.state != State::unused && client.state != State::idle; }
  bool connect_one();
  void ask(Client& client);
  // poll waits for `timeout_ms` at most and handles what has happened; false: nothing has.
  bool poll(int timeout_ms);
  void handle(Client& client, std::uint32_t events);
  void receive(Client& client);
  // take_in consumes bytes of an answer; true: it is complete.
  bool take_in(Client& client, const char* bytes, std::size_t count);
  void answered(Client& client);
  void ended(Client& client, bool cleanly);
  void release(Client& client, long& count);
  void give_up();

  sockaddr_in server_;
  char request_[256];
  std::size_t request_bytes_;
  std::size_t most_;
  std::size_t used_ = 0;  // of clients_, since the last close
  long outstanding_ = 0;  // clients that wait for something
  Client* clients_;
  int poller_;
  Counts counts_;
};

}  // namespace bench
