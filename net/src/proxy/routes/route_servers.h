#pragma once

#include <coir/http/proxy_table.h>

#include <expected>
#include <optional>
#include <string_view>

namespace coir::http {

// next_item takes the next of "A,B" off `list`.
std::string_view next_item(std::string_view& list) noexcept;

// path_of is what stands behind a URL's host; empty where nothing does.
std::string_view path_of(std::string_view url) noexcept;

// climbs tells whether a path has a segment that is "." or "..", encoded or not: the server behind may take it for another
// path than the one that was chosen by its prefix. A backslash and `;` end a segment, too, as some servers have it.
bool climbs(std::string_view path) noexcept;

// rest_below is what of a path stands behind the prefix, where the path is the prefix itself or continues it at a slash.
// Both are compared as a server may see them: decoded once, `%2f` as a slash, and a run of slashes as one.
std::optional<std::string_view> rest_below(std::string_view path, std::string_view prefix) noexcept;

// check_servers tells whether a route's prefix and servers can be used. True: one of them is asked by https.
std::expected<bool, RouteFault> check_servers(std::string_view prefix, std::string_view urls) noexcept;

}  // namespace coir::http
