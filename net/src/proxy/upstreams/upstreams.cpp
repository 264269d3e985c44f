// Upstreams, of proxy/upstreams/upstreams.h: a group is made of the addresses of its servers.
#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/wire/url.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "base/charged.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {
namespace {

constexpr unsigned kMostWeight = 100;

std::expected<void, Error> set(UpstreamMember& member, const UpstreamServer& server,
                               const UpstreamOptions& options) noexcept {
  if (server.weight == 0 || server.weight > kMostWeight) return std::unexpected(Error{ErrorCode::invalid});
  member.weight = server.weight;
  if (server.url.starts_with("unix:")) {
    const auto at = Address::parse(server.url);
    if (!at) return std::unexpected(Error{ErrorCode::invalid});
    member.address = *at;
    return {};
  }
  char text[sizeof member.host + 32];
  const bool has_scheme = server.url.find("://") != std::string_view::npos;
  const auto url = parse_url(has_scheme ? server.url : format(text, "http://", server.url));
  if (!url || url->host.size() >= sizeof member.host || url->user_info.data() != nullptr) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  if (url->secure && options.tls == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  memcpy(member.host, url->host.data(), url->host.size());
  member.port = url->port;
  member.secure = url->secure;
  member.looked_up = true;
  return {};
}

std::size_t bytes_of(std::size_t members) noexcept {
  return sizeof(UpstreamGroup) + members * sizeof(UpstreamMember);
}
static_assert(alignof(UpstreamMember) <= alignof(UpstreamGroup));

}  // namespace

std::expected<Upstreams, Error> Upstreams::create(std::span<const UpstreamServer> servers,
                                                  const UpstreamOptions& options) noexcept {
  if (servers.empty() || servers.size() > kMost) return std::unexpected(Error{ErrorCode::invalid});
  const std::string_view path = options.health.path;
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!path.empty() && (path.front() != '/' || !std::ranges::all_of(path, visible) ||
                        options.health.interval.count() <= 0 || options.health.timeout.count() <= 0)) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  const std::size_t bytes = bytes_of(servers.size());
  void* const memory = take_charged(account::http, bytes);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const members = reinterpret_cast<UpstreamMember*>(static_cast<char*>(memory) + sizeof(UpstreamGroup));
  Upstreams made(*::new (memory) UpstreamGroup({members, servers.size()}, options));
  for (std::size_t i = 0; i < servers.size(); ++i) ::new (members + i) UpstreamMember(made.group(), options);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (auto set_up = set(members[i], servers[i], options); !set_up) return std::unexpected(set_up.error());
  }
  return made;
}

Upstreams::~Upstreams() {
  if (group_ == nullptr) return;
  const std::size_t bytes = bytes_of(group_->members().size());
  group_->~UpstreamGroup();
  give_charged(account::http, group_, bytes);
}

std::expected<void, Error> Upstreams::watch() noexcept {
  return group_->watch();
}

UpstreamState Upstreams::state() const noexcept {
  return group_->state();
}

std::size_t Upstreams::size() const noexcept {
  return group_->members().size();
}

UpstreamServerState Upstreams::server(std::size_t index) const noexcept {
  return group_->state_of(group_->members()[index]);
}

const DurationHistogram& Upstreams::latency(std::size_t index) const noexcept {
  return group_->members()[index].latency;
}

std::string_view Upstreams::name(std::size_t index, std::span<char> room) const noexcept {
  return UpstreamGroup::name_of(group_->members()[index], room);
}

}  // namespace coir::http
