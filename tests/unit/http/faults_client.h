#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::test {

// How long any one wait may take. A server under faults and a sanitizer answers in a few of them.
inline constexpr int kPatienceSeconds = 60;

// Scenario is a request and what answers it.
struct Scenario {
  const char* name;
  std::string_view request;
  int status;
  std::size_t body_bytes;  // 0: whatever it is
  bool until_close = false;
  std::size_t first_bytes = 0;  // of the request, behind which there is a pause
};

// Client is a blocking socket, so that nothing of coir is on this side.
class Client {
 public:
  explicit Client(std::uint16_t port, int patience_ms = kPatienceSeconds * 1000)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

  bool connected() const { return connected_; }

  enum class Heard { answer, refusal, nothing, part, silence, false_whole };

  // ask sends a request and says what came of it.
  Heard ask(const Scenario& scenario) {
    have_ = 0;
    end_ = reset_ = silent_ = false;
    // A failure shows in the answer.
    const std::size_t first = scenario.first_bytes;
    if (first != 0) {
      static_cast<void>(!::send(fd_, scenario.request.data(), first, MSG_NOSIGNAL));
      pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
      ::poll(&entry, 1, 3);
    }
    static_cast<void>(!::send(fd_, scenario.request.data() + first, scenario.request.size() - first, MSG_NOSIGNAL));
    return listen(scenario);
  }

  // listen goes on to hear what came of the last request, where ask or listen has heard silence.
  Heard listen(const Scenario& scenario) {
    if (silent_) end_ = silent_ = false;
    std::size_t head;
    while ((head = text().find("\r\n\r\n")) == std::string_view::npos && more()) {
    }
    if (silent_) return Heard::silence;
    if (have_ == 0) return Heard::nothing;
    if (head == std::string_view::npos) return Heard::part;
    head += 4;
    const std::string_view fields = text().substr(0, head);
    const int status = atoi(heard_ + 9);
    std::size_t bytes = 0;
    if (const std::size_t at = fields.find("Content-Length: "); at != fields.npos) {
      const std::size_t length = strtoul(heard_ + at + 16, nullptr, 10);
      while (have_ < head + length && more()) {
      }
      if (silent_) return Heard::silence;
      if (have_ < head + length) return Heard::part;
      bytes = length;
      if (have_ > head + length) return Heard::false_whole;
    } else if (fields.find("Transfer-Encoding: chunked") != fields.npos) {
      while (!text().ends_with("\r\n0\r\n\r\n") && more()) {
      }
      if (silent_) return Heard::silence;
      if (!text().ends_with("\r\n0\r\n\r\n")) return Heard::part;
      bytes = decoded(head);
    } else {
      while (more()) {
      }
      if (silent_) return Heard::silence;
      bytes = have_ - head;
      // Here the end of the connection is all that tells a whole answer from a part.
      if (reset_) return Heard::part;
    }
    if (status == scenario.status)
      return scenario.body_bytes == 0 || bytes == scenario.body_bytes ? Heard::answer : Heard::false_whole;
    return status == 503 || status == 500 ? Heard::refusal : Heard::false_whole;
  }

  std::string_view text() const { return {heard_, have_}; }

  // tell writes what was heard: a refusal, an end and silence have other causes.
  void tell(Heard heard) const {
    fprintf(stderr, "heard (%u, %s): %.*s\n", static_cast<unsigned>(heard), reset_ ? "reset" : "no reset",
            static_cast<int>(std::min<std::size_t>(have_, 300)), heard_);
  }

 private:
  bool more() {
    if (end_) return false;
    const ssize_t got = ::read(fd_, heard_ + have_, sizeof heard_ - have_ - 1);
    if (got > 0) {
      have_ += static_cast<std::size_t>(got);
      heard_[have_] = '\0';
      return true;
    }
    end_ = true;
    reset_ = got < 0 && errno != EAGAIN;
    silent_ = got < 0 && errno == EAGAIN;
    return false;
  }

  // decoded is how many bytes the chunks from `at` hold.
  std::size_t decoded(std::size_t at) const {
    std::size_t total = 0;
    while (at < have_) {
      char* end = nullptr;
      const std::size_t size = strtoul(heard_ + at, &end, 16);
      if (size == 0) break;
      total += size;
      at = static_cast<std::size_t>(end - heard_) + 2 + size + 2;
    }
    return total;
  }

  int fd_;
  bool connected_ = false, end_ = false, reset_ = false, silent_ = false;
  std::size_t have_ = 0;
  static inline char heard_[1'000'000];
};

}  // namespace coir::test
