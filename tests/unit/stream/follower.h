#pragma once

#include <coir/http/server.h>
#include <coir/tcp.h>
#include <coir/tls.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/support/everywhere.h"
#include "tests/support/far_end.h"
#include "tests/support/tls_pair.h"

namespace coir::test {

// Follower subscribes by HTTP, over TLS where it is given a context, and keeps what it hears.
class Follower {
 public:
  explicit Follower(const Address& server, const TlsContext* trusts = nullptr) {
    auto connected = TcpStream::connect(server, patience());
    if (!connected) return;
    stream_ = Stream(std::move(*connected));
    if (trusts == nullptr) return;
    if (!stream_.begin_tls(*trusts, "board.test", patience()) || !stream_.handshake()) stream_.close();
  }

  bool ask(std::string_view path, std::string_view fields = {}, std::string_view method = "GET") {
    return say(method) && say(" ") && say(path) && say(" HTTP/1.1\r\nHost: localhost\r\n") && say(fields) &&
           say("\r\n");
  }
  bool say(std::string_view text) { return text.empty() || stream_.write(text, patience()).has_value(); }

  // hears reads until `text` has come, and forgets all up to its end. False: the stream has ended before.
  bool hears(std::string_view text) {
    for (;;) {
      if (const std::size_t at = heard().find(text); at != std::string_view::npos) {
        from_ += at + text.size();
        return true;
      }
      if (!more()) return false;
    }
  }
  // hears_next tells whether what comes next is `text`.
  bool hears_next(std::string_view text) {
    while (heard().size() < text.size()) {
      if (!more()) return false;
    }
    if (!heard().starts_with(text)) return false;
    from_ += text.size();
    return true;
  }
  // hears_head reads the head of the answer and tells whether it has a line.
  bool hears_head(std::string_view line) {
    while (heard().find("\r\n\r\n") == std::string_view::npos) {
      if (!more()) return false;
    }
    const std::size_t end = heard().find("\r\n\r\n") + 4;
    return heard().substr(0, end).find(line) != std::string_view::npos;
  }
  // hears_end tells whether the connection ends, in good order, without another byte. end drops all that still comes
  // and tells how the connection ends.
  bool hears_end() { return heard().empty() && !more() && ended_ == ErrorCode::end_of_stream; }
  ErrorCode end() {
    do {
      from_ = have_;
    } while (more());
    return ended_;
  }

  std::string_view heard() const { return {bytes_ + from_, have_ - from_}; }
  Stream& stream() { return stream_; }
  void close() { stream_.close(); }

 private:
  bool more() {
    if (from_ > 0) {
      __builtin_memmove(bytes_, bytes_ + from_, have_ - from_);
      have_ -= from_;
      from_ = 0;
    }
    if (have_ == sizeof bytes_) return false;
    const auto got = stream_.read({bytes_ + have_, sizeof bytes_ - have_}, patience());
    if (!got) {
      ended_ = got.error().code;
      return false;
    }
    have_ += *got;
    return true;
  }

  Stream stream_;
  std::size_t from_ = 0;
  std::size_t have_ = 0;
  ErrorCode ended_ = ErrorCode::invalid;
  char bytes_[1024];
};

// EventServers is the group of tests that have a server of streams: they run everywhere, over TCP and TLS.
class EventServers : public Everywhere {
 public:
  // with_server calls `body` with a running server and its address. With a context the server speaks TLS.
  template <class Body>
  void with_server(const http::ServerOptions& options, const TlsContext* tls, Body body) {
    std::optional<TlsContextSlot> slot;
    if (tls != nullptr) slot.emplace(*tls);
    auto server = http::Server::create(options);
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    expect(server->add(std::move(*listener), tls == nullptr ? nullptr : &*slot).has_value());
    expect(server->start().has_value());
    body(*server, address);
    expect(server->stop(patience()).has_value());
    expect(server->gauges().open == 0);
  }
  template <class Body>
  void with_server(const http::ServerOptions& options, Body body) {
    with_server(options, nullptr, body);
  }
};

}  // namespace coir::test
