#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fastcgi/record.h"
#include "tests/unit/client/scripted_server.h"

namespace coir::test {

// Application is what a script of the other side says and hears.
class Application {
 public:
  explicit Application(Peer& peer) : peer_(peer) {}

  // hear reads a record and returns its type, 0 at the end; has_more tells whether it had content.
  unsigned hear() {
    unsigned char head[http::kFastCgiHeader];
    if (!hear_all(head, sizeof head)) return 0;
    id_ = static_cast<std::uint16_t>(head[2] << 8 | head[3]);
    size_ = static_cast<std::size_t>(head[4] << 8 | head[5]);
    if (!hear_all(content_, size_ + head[6])) return 0;
    return head[1];
  }
  std::string_view content() const { return {content_, size_}; }
  bool hear_beginning() {
    return hear_beginning([](std::string_view) {});
  }
  // hear_beginning gives the content of each record of parameters to `visit`.
  bool hear_beginning(auto visit) {
    for (unsigned type = hear(); type != 0; type = hear()) {
      if (type != static_cast<unsigned>(http::FastCgiType::params)) continue;
      if (size_ == 0) return true;
      visit(content());
    }
    return false;
  }
  bool say(std::string_view text, http::FastCgiType type = http::FastCgiType::output) {
    char head[http::kFastCgiHeader];
    http::write_fastcgi_header(head, type, id_, text.size());
    return peer_.say({head, sizeof head}) && peer_.say(text);
  }
  bool end() { return say({"\0\0\0\0\0\0\0\0", 8}, http::FastCgiType::end_request); }

 private:
  bool hear_all(void* into, std::size_t bytes) {
    for (std::size_t have = 0; have < bytes;) {
      const ssize_t got = ::recv(peer_.fd(), static_cast<char*>(into) + have, bytes - have, 0);
      if (got <= 0) return false;
      have += static_cast<std::size_t>(got);
    }
    return true;
  }

  Peer& peer_;
  std::uint16_t id_ = 0;
  std::size_t size_ = 0;
  char content_[65'535 + 255];
};

}  // namespace coir::test
