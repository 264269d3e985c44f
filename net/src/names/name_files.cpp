#include "names/name_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "socket/kernel.h"

namespace coir::names {
namespace {

constexpr unsigned kLongestTimeout = 60, kMostAttempts = 10, kMostDots = 15;

// Lines goes through a file's lines. A line longer than `room` comes in several pieces.
class Lines {
 public:
  Lines(const char* path, std::span<char> room) noexcept : room_(room), fd_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool next(std::string_view& line) noexcept {
    for (;;) {
      const std::string_view there(room_.data() + at_, size_ - at_);
      const std::size_t end = there.find('\n');
      if (end != there.npos) return give(line, there.substr(0, end), 1);
      if (!there.empty() && (ended_ || there.size() == room_.size())) return give(line, there, 0);
      if (ended_ || fd_ < 0) return false;
      memmove(room_.data(), there.data(), there.size());
      size_ = there.size();
      at_ = 0;
      const ssize_t got = ::read(fd_, room_.data() + size_, room_.size() - size_);
      ended_ = got <= 0;
      if (got > 0) size_ += static_cast<std::size_t>(got);
    }
  }

 private:
  bool give(std::string_view& line, std::string_view text, std::size_t more) noexcept {
    at_ += text.size() + more;
    line = text.substr(0, text.find('#'));
    return true;
  }

  std::span<char> room_;
  std::size_t at_ = 0, size_ = 0;
  int fd_;
  bool ended_ = false;
};

// option reads a number behind its name, such as "ndots:2".
void option(std::string_view word, std::string_view name, unsigned most, unsigned& into) noexcept {
  if (!word.starts_with(name)) return;
  unsigned value = 0;
  for (const char c : word.substr(name.size())) {
    if (c < '0' || c > '9') return;
    value = std::min(most, value * 10 + static_cast<unsigned>(c - '0'));
  }
  into = value;
}

bool same_host(std::string_view one, std::string_view other) noexcept {
  if (other.ends_with('.')) other.remove_suffix(1);
  return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace

std::string_view next_word(std::string_view& line) noexcept {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

bool add_literal(std::string_view host, Addresses& to) noexcept {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
  if (host.size() >= sizeof text) return false;
  memcpy(text, host.data(), host.size());
  text[host.size()] = '\0';
  sockaddr_in in{};
  in.sin_family = AF_INET;
  if (inet_pton(AF_INET, text, &in.sin_addr) == 1) return to.add(reinterpret_cast<const sockaddr*>(&in));
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  if (char* const zone = strchr(text, '%'); zone != nullptr) {
    *zone = '\0';
    in6.sin6_scope_id = if_nametoindex(zone + 1);
    if (in6.sin6_scope_id == 0) option(zone + 1, "", UINT32_MAX / 16, in6.sin6_scope_id);
    if (in6.sin6_scope_id == 0) return false;
  }
  return inet_pton(AF_INET6, text, &in6.sin6_addr) == 1 && to.add(reinterpret_cast<const sockaddr*>(&in6));
}

bool find_in_hosts(std::string_view host, Addresses& found, std::span<char> room) noexcept {
  const std::size_t before = found.size();
  Lines lines("/etc/hosts", room);
  for (std::string_view line; lines.next(line);) {
    const std::string_view address = next_word(line);
    for (std::string_view name = next_word(line); !name.empty(); name = next_word(line)) {
      if (!same_host(name, host)) continue;
      add_literal(address, found);
      break;
    }
  }
  return found.size() != before;
}

void NameServers::read(std::span<char> room) noexcept {
  Lines lines("/etc/resolv.conf", room);
  for (std::string_view line; lines.next(line);) take(line);
  if (servers.size() == 0) add_literal("127.0.0.1", servers);
  timeout_s = std::max(1u, timeout_s);
  attempts = std::max(1u, attempts);
}

void NameServers::take(std::string_view line) noexcept {
  const std::string_view what = next_word(line);
  if (what == "nameserver") {
    if (servers.size() < kMost) add_literal(next_word(line), servers);
  } else if (what == "search" || what == "domain") {
    search_size_ = std::min(line.size(), sizeof search_);
    memcpy(search_, line.data(), search_size_);
    // A domain that was cut off is none.
    if (search_size_ < line.size()) search_size_ = search().find_last_of(" \t") + 1;
  } else if (what == "options") {
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      option(word, "timeout:", kLongestTimeout, timeout_s);
      option(word, "attempts:", kMostAttempts, attempts);
      option(word, "ndots:", kMostDots, dots);
    }
  }
}

}  // namespace coir::names
