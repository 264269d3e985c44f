#include "site.h"

#include <coir/config.h>
#include <coir/http/wire/query.h>
#include <coir/net/stream.h>

#include <algorithm>

#include "take.h"

#if COIR_SITE

namespace {

bool is_visible(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool has_hash(const Setting& setting) noexcept {
  return coir::kTls || setting.wrong({"this build has no TLS, whose hash it needs"});
}

}  // namespace

// take_cache_rule takes "PATTERN=VALUE".
bool take_cache_rule(const Setting& setting, Options& options) noexcept {
  constexpr std::size_t kLongest = 128;
  if (options.cache_rule_count == Options::kMaxCacheRules)
    return setting.wrong({"more than ", Options::kMaxCacheRules, " rules"});
  const std::string_view rule = setting.text;
  if (!is_visible(rule)) return setting.wrong({"not visible text"});
  const std::size_t equals = rule.find('=');
  if (equals == rule.npos || equals == 0 || equals + 1 == rule.size())
    return setting.wrong({"not PATTERN=VALUE, such as '*.css=max-age=3600'"});
  const std::string_view pattern = rule.substr(0, equals), value = rule.substr(equals + 1);
  if (value.size() > kLongest) return setting.wrong({"the value is longer than ", kLongest, " bytes"});
  if (!pattern.starts_with('/') && pattern.find('/') != pattern.npos)
    return setting.wrong({"a pattern with a slash must begin with a slash"});
  options.cache_rules[options.cache_rule_count++] = {pattern, value};
  return true;
}

// take_error_page takes "STATUS=PATH".
bool take_error_page(const Setting& setting, Options& options) noexcept {
  if (options.error_page_count == Options::kMaxErrorPages)
    return setting.wrong({"more than ", Options::kMaxErrorPages, " pages"});
  const std::string_view page = setting.text;
  const std::size_t equals = page.find('=');
  const auto status = coir::http::parse_integer(page.substr(0, equals));
  if (equals == page.npos || !status || equals + 1 == page.size())
    return setting.wrong({"not STATUS=PATH, such as 404=/missing.html"});
  if (*status < 400 || *status > 599) return setting.wrong({"not a status from 400 to 599"});
  for (const auto& before : std::span(options.error_pages).first(options.error_page_count)) {
    if (before.status == *status) return setting.wrong({"a page for this status was given before"});
  }
  options.error_pages[options.error_page_count++] = {static_cast<int>(*status), setting.text + equals + 1};
  return true;
}

bool take_auth(const Setting& setting, Options& options) noexcept {
  return has_hash(setting) && take_file<&Options::credentials>(setting, options);
}

bool take_hash_password(const Setting& setting, Options& options) noexcept {
  options.action = Options::Action::hash_password;
  options.hash_for = setting.text;
  return has_hash(setting);
}

bool take_hash_token(const Setting& setting, Options& options) noexcept {
  options.action = Options::Action::hash_token;
  options.hash_for = setting.text;
  return has_hash(setting);
}

#endif
