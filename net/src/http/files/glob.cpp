#include "http/files/glob.h"

#include <cstddef>

namespace coir::http {

bool matches_glob(std::string_view pattern, std::string_view path) noexcept {
  if (pattern.starts_with('/')) {
    pattern.remove_prefix(1);
  } else if (const std::size_t slash = path.rfind('/'); slash != path.npos) {
    path.remove_prefix(slash + 1);
  }
  std::size_t at = 0;
  std::size_t star = pattern.npos;  // the last '*' passed, whose run is made longer when what follows does not fit
  std::size_t run_end = 0;
  std::size_t place = 0;
  while (place < path.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      run_end = place;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == path[place])) {
      ++at;
      ++place;
    } else if (star != pattern.npos) {
      at = star + 1;
      place = ++run_end;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace coir::http
