#pragma once

#include <coir/format.h>
#include <coir/tcp.h>

#include <initializer_list>
#include <span>
#include <string_view>

#include "proxy/upstreams/upstream.h"

namespace coir::test {

// ListeningServers are listeners whose connections the kernel takes; nobody answers.
struct ListeningServers {
  static constexpr std::size_t kMost = 4;
  TcpListener listeners[kMost];
  char text[kMost][32];
  http::UpstreamServer servers[kMost];

  explicit ListeningServers(std::initializer_list<unsigned> weights) {
    for (const unsigned weight : weights) {
      listeners[count] = std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0")));
      servers[count] = {format(text[count], "http://127.0.0.1:", listeners[count].local_address().port()), weight};
      ++count;
    }
  }
  http::Upstreams group(http::UpstreamOptions options = {}) {
    return std::move(*http::Upstreams::create(std::span(servers).first(count), options));
  }
  std::size_t count = 0;
};

// in_use is how many leases each server has: "6 2".
inline std::string_view in_use(const http::UpstreamGroup& group, std::span<char> room) {
  Formatter out(room);
  for (const http::UpstreamMember& each : group.members()) out.add(out.text().empty() ? "" : " ", each.in_use);
  return out.text();
}

}  // namespace coir::test
