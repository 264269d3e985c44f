#include <coir/http/wire/request.h>
#include <coir/http/wire/url.h>

#include <cstring>

#include "http/message/target.h"
#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::unexpected<Error> kInvalid{ErrorCode::invalid};

constexpr bool is_scheme_character(char c) noexcept {
  return is_digit(c) || (c | 0x20) - 'a' + 0u < 26 || c == '+' || c == '-' || c == '.';
}

// scheme_of returns what stands before the first ':' of an absolute reference, else an empty view.
std::string_view scheme_of(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size() && is_scheme_character(text[at])) ++at;
  if (at == 0 || at == text.size() || text[at] != ':' || is_digit(text[0])) return {};
  return first(text, at);
}

// read_authority takes the authority apart. The port's digits have been checked by is_authority.
bool read_authority(std::string_view text, Url& url) noexcept {
  if (const std::size_t at = text.rfind('@'); at != text.npos) {
    url.user_info = first(text, at);
    text = after(text, at + 1);
    for (const char c : url.user_info) {
      // Browsers take a backslash for the end of the host.
      if (c <= ' ' || c >= 0x7f || c == '\\') return false;
    }
  }
  if (text.find('%') != text.npos || !is_authority(text)) return false;
  url.authority = text;
  const std::size_t host_end = text[0] == '[' ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  url.host = text[0] == '[' ? std::string_view(text.data() + 1, host_end - 2) : first(text, host_end);
  unsigned port = 0;
  for (const char c : after(text, std::min(host_end + 1, text.size()))) {
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  if (host_end + 1 < text.size()) {
    if (port == 0) return false;
    url.port = static_cast<std::uint16_t>(port);
  } else {
    // "host:" means the scheme's port, which needs no colon.
    url.authority = first(text, host_end);
  }
  return true;
}

// Output writes an address piece by piece, and remembers that it did not fit.
class Output {
 public:
  explicit Output(std::span<char> out) noexcept : out_(out) {}

  void add(std::string_view text) noexcept {
    if (!fits_ || text.size() > out_.size() - size_) {
      fits_ = false;
      return;
    }
    if (!text.empty()) memcpy(out_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  // encode adds text, of which what no target may hold is percent-encoded. False: it holds a control character.
  bool encode(std::string_view text) noexcept {
    for (const char& c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' || byte == 0x7f) return false;
      if (byte > ' ' && byte < 0x7f) {
        add({&c, 1});
      } else {
        constexpr std::string_view digits = "0123456789ABCDEF";
        const char escape[] = {'%', digits[byte >> 4], digits[byte & 15]};
        add({escape, 3});
      }
    }
    return true;
  }
  // remove_dots resolves "." and ".." in the path that begins at `begin` (RFC 3986, 5.2.4), in place.
  void remove_dots(std::size_t begin) noexcept {
    if (!fits_) return;
    std::size_t to = begin;
    for (std::size_t at = begin; at < size_;) {
      std::size_t end = at + 1;
      while (end < size_ && out_[end] != '/') ++end;
      const std::string_view segment(out_.data() + at, end - at);
      const bool last = end == size_;
      if (segment == "/." || segment == "/..") {
        if (segment.size() == 3) {
          while (to > begin && out_[--to] != '/') {
          }
        }
        if (last) out_[to++] = '/';
      } else {
        memmove(out_.data() + to, segment.data(), segment.size());
        to += segment.size();
      }
      at = end;
    }
    size_ = to;
  }

  std::size_t size() const noexcept { return size_; }
  std::expected<std::string_view, Error> text() const noexcept {
    if (!fits_) return std::unexpected(Error{ErrorCode::limit});
    return std::string_view(out_.data(), size_);
  }

 private:
  std::span<char> out_;
  std::size_t size_ = 0;
  bool fits_ = true;
};

}  // namespace

std::expected<Url, Error> parse_url(std::string_view text) noexcept {
  Url url;
  const std::string_view scheme = scheme_of(text);
  if (scheme.empty()) return kInvalid;
  url.secure = equals_ignoring_case(scheme, "https");
  if (!url.secure && !equals_ignoring_case(scheme, "http")) return std::unexpected(Error{ErrorCode::unsupported});
  url.port = url.secure ? 443 : 80;
  std::string_view rest = after(until(text, '#'), scheme.size() + 1);
  if (!begins_ignoring_case(rest, "//")) return kInvalid;
  rest.remove_prefix(2);
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  if (!read_authority(first(rest, authority_end), url)) return kInvalid;
  rest.remove_prefix(authority_end);
  for (const char c : rest) {
    if (c <= ' ' || c >= 0x7f) return kInvalid;
  }
  const std::size_t question = rest.find('?');
  url.path = question == 0 || rest.empty() ? std::string_view("/") : until(rest, '?');
  if (question != rest.npos) url.query = after(rest, question + 1);
  return url;
}

std::expected<Url, Error> parse_authority(std::string_view text) noexcept {
  Url url;
  url.path = "/";
  if (!read_authority(text, url)) return kInvalid;
  return url;
}

std::expected<std::string_view, Error> resolve_url(const Url& base, std::string_view reference,
                                                   std::span<char> out) noexcept {
  std::string_view rest = until(trim(reference), '#');
  Output output(out);
  const std::string_view scheme = scheme_of(rest);
  if (!scheme.empty()) rest.remove_prefix(scheme.size() + 1);
  output.add(!scheme.empty() ? scheme : base.secure ? "https" : "http");
  output.add("://");
  const bool names_authority = begins_ignoring_case(rest, "//");
  if (names_authority) {
    rest.remove_prefix(2);
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    if (!output.encode(first(rest, end))) return kInvalid;
    rest.remove_prefix(end);
  } else if (scheme.empty()) {
    output.add(base.authority);
  } else {
    return kInvalid;
  }
  const std::size_t begin = output.size();
  const std::string_view path = until(rest, '?');
  if (names_authority) {
    if (path.empty()) output.add("/");
  } else if (path.empty()) {
    output.add(base.path);
  } else if (path[0] != '/') {
    output.add(first(base.path, base.path.rfind('/') + 1));
  }
  if (!output.encode(path)) return kInvalid;
  output.remove_dots(begin);
  if (path.size() != rest.size()) {
    if (!output.encode(after(rest, path.size()))) return kInvalid;
  } else if (!names_authority && path.empty() && base.query.data() != nullptr) {
    output.add("?");
    output.add(base.query);
  }
  return output.text();
}

bool same_origin(const Url& a, const Url& b) noexcept {
  return a.secure == b.secure && a.port == b.port && equals_ignoring_case(a.host, b.host);
}

}  // namespace coir::http
