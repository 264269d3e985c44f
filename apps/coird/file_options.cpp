#include "file_options.h"

#include <coir/config.h>
#include <coir/http/percent.h>
#include <coir/net/stream.h>

#include <algorithm>

#include "complaint.h"
#include "option_table.h"

#if COIR_SITE

namespace {

bool is_visible(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// add_cache_rule takes "PATTERN=VALUE" of --cache.
bool add_cache_rule(const char* text, Options& options) noexcept {
  constexpr std::size_t kLongest = 128;
  if (options.cache_rule_count == Options::kMaxCacheRules)
    return complain(kSeeHelp, {"--cache '", text, "': more than ", Options::kMaxCacheRules, " rules"});
  const std::string_view rule = text;
  if (!is_visible(rule)) return complain(kSeeHelp, {"--cache: a rule is not visible text"});
  const std::size_t equals = rule.find('=');
  if (equals == rule.npos || equals == 0 || equals + 1 == rule.size())
    return complain(kSeeHelp, {"--cache '", text, "': not PATTERN=VALUE, such as '*.css=max-age=3600'"});
  const std::string_view pattern = rule.substr(0, equals), value = rule.substr(equals + 1);
  if (value.size() > kLongest)
    return complain(kSeeHelp, {"--cache '", text, "': the value is longer than ", kLongest, " bytes"});
  if (!pattern.starts_with('/') && pattern.find('/') != pattern.npos)
    return complain(kSeeHelp, {"--cache '", text, "': a pattern with a slash begins with one"});
  options.cache_rules[options.cache_rule_count++] = {pattern, value};
  return true;
}

// add_error_page takes "STATUS=PATH" of --error-page.
bool add_error_page(const char* text, Options& options) noexcept {
  if (options.error_page_count == Options::kMaxErrorPages)
    return complain(kSeeHelp, {"--error-page '", text, "': more than ", Options::kMaxErrorPages, " pages"});
  const std::string_view page = text;
  const std::size_t equals = page.find('=');
  const auto status = coir::http::parse_integer(page.substr(0, equals));
  if (equals == page.npos || !status || equals + 1 == page.size())
    return complain(kSeeHelp, {"--error-page '", text, "': not STATUS=PATH, such as 404=/missing.html"});
  if (*status < 400 || *status > 599)
    return complain(kSeeHelp, {"--error-page '", text, "': not a status from 400 to 599"});
  for (const auto& before : std::span(options.error_pages).first(options.error_page_count)) {
    if (before.status == *status)
      return complain(kSeeHelp, {"--error-page '", text, "': a page for this status was given before"});
  }
  options.error_pages[options.error_page_count++] = {static_cast<int>(*status), text + equals + 1};
  return true;
}

}  // namespace

bool apply_site(int chosen, const char* text, Options& options) noexcept {
  switch (chosen) {
    case kIndex:
      options.index = true;
      return true;
    case kCache:
      return add_cache_rule(text, options);
    case kErrorPage:
      return add_error_page(text, options);
    case kAllowPut:
      options.writable = text;
      return true;
    default:
      break;
  }
  if (!coir::kTls)
    return complain(kSeeHelp, {"--", name_of(chosen), " '", text, "': this build has no TLS, whose hash it needs"});
  if (chosen == kAuth) {
    options.credentials = text;
  } else {
    options.action = chosen == kHashPassword ? Options::Action::hash_password : Options::Action::hash_token;
    options.hash_for = text;
  }
  return true;
}

#else

bool apply_site(int chosen, const char*, Options&) noexcept {
  return complain("build it with -DCOIR_SITE=ON", {"--", name_of(chosen), ": this coird was built without COIR_SITE"});
}

#endif
