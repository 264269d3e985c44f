#include "fetch_tool.h"

#include "tools.h"

#if COIRD_MCP && COIR_CLIENT

#include <algorithm>

#include "workspace.h"

using coir::mcp::Call;

bool Fetcher::judge_host(const ClientGuard& self, std::string_view host, std::uint16_t port) noexcept {
  return static_cast<const Fetcher&>(self).list_.admits(host, port);
}

bool Fetcher::judge_address(const ClientGuard& self, std::string_view, const coir::Address& address) noexcept {
  return static_cast<const Fetcher&>(self).list_.reaches(address);
}

std::expected<void, coir::Error> Fetcher::open() noexcept {
  auto made = coir::http::Client::create({.max_connections = 4, .max_resting = 0, .guard = this});
  if (!made) return std::unexpected(made.error());
  client_.emplace(std::move(*made));
  return {};
}

void fetch_url(Call& call, const FetchWish& wish) {
  const Workspace memory(wish.most);
  if (memory.bytes().empty()) return call.fail("there is no memory for that at the moment");
  auto response = call.context<Toolbox>().fetcher->client().get(wish.url, {.deadline = call.deadline()});
  if (!response) return call.fail(coir::describe(response.error()));
  Fetched fetched{.status = response->status(), .url = response->url(), .media_type = response->header("Content-Type")};
  std::size_t size = 0;
  while (size < wish.most && !fetched.whole) {
    const auto got = response->read(memory.bytes().subspan(size));
    fetched.whole = !got && got.error() == coir::ErrorCode::end_of_stream;
    if (!got && !fetched.whole) return call.fail(coir::describe(got.error()));
    if (!got) break;
    size += *got;
    call.progress(static_cast<std::int64_t>(size), static_cast<std::int64_t>(std::min<std::uint64_t>(
                                                       response->content_length().value_or(0), INT64_MAX)));
  }
  char beyond;
  if (!fetched.whole) {
    const auto end = response->read({&beyond, 1});
    fetched.whole = !end && end.error() == coir::ErrorCode::end_of_stream;
  }
  fetched.text = {memory.bytes().data(), size};
  call.structured(kFetched.entries, &fetched);
}

#endif
