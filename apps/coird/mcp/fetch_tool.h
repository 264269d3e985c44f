#pragma once

#include "options.h"

#if COIRD_MCP && COIR_CLIENT
#include <coir/http/client.h>
#include <coir/mcp.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "fetch_list.h"

struct FetchWish {
  std::string_view url;
  std::uint32_t most = 16 * 1024;
};
inline constexpr auto kFetch =
    coir::mcp::fields(coir::mcp::field<&FetchWish::url>("url", "of http or https").between(8, 2000),
                      coir::mcp::field<&FetchWish::most>("max_bytes", "of the content").between(1, 65536).optional());

struct Fetched {
  std::int32_t status = 0;
  std::string_view url, media_type, text;
  bool whole = false;
};
inline constexpr auto kFetched = coir::mcp::fields(
    coir::mcp::field<&Fetched::status>("status"), coir::mcp::field<&Fetched::url>("url", "behind all redirects"),
    coir::mcp::field<&Fetched::media_type>("media_type"), coir::mcp::field<&Fetched::text>("text"),
    coir::mcp::field<&Fetched::whole>("whole", "false: there is more of it"));

// Fetcher is a client that goes only where a list allows: each redirect and each address of a name is judged.
class Fetcher : private coir::http::ClientGuard {
 public:
  explicit Fetcher(FetchList list) noexcept
      : ClientGuard{.admits_host = &judge_host, .admits_address = &judge_address}, list_(list) {}
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // open prepares the client. Errors: no_memory.
  [[nodiscard]] std::expected<void, coir::Error> open() noexcept;
  coir::http::Client& client() noexcept { return *client_; }

 private:
  static bool judge_host(const ClientGuard& self, std::string_view host, std::uint16_t port) noexcept;
  static bool judge_address(const ClientGuard& self, std::string_view host, const coir::Address& address) noexcept;

  FetchList list_;
  std::optional<coir::http::Client> client_;
};

void fetch_url(coir::mcp::Call& call, const FetchWish& wish);
#endif
