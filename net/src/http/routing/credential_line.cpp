#include "http/routing/credential_line.h"

#include <coir/http/wire/query.h>

#include <string.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// take_word cuts the next word off a line; empty when there is none.
std::string_view take_word(std::string_view& line) noexcept {
  while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
  std::size_t size = 0;
  while (size < line.size() && !is_space(line[size])) ++size;
  const std::string_view word = first(line, size);
  line.remove_prefix(size);
  return word;
}

// read_hex reads an even number of digits, for `most` bytes at most; 0 for anything else.
std::size_t read_hex(std::string_view text, char* out, std::size_t most) noexcept {
  if (text.size() % 2 != 0 || text.size() / 2 > most) return 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]), low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return 0;
    out[i / 2] = static_cast<char>(high * 16 + low);
  }
  return text.size() / 2;
}

bool has_control(std::string_view text) noexcept {
  return std::ranges::any_of(text, [](char c) { return is(c, kFieldControl) || c == '\t'; });
}

}  // namespace

bool is_credential_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= Credential::kMostName && !has_control(name) && name.find(':') == name.npos &&
         name.find(' ') == name.npos;
}

bool is_credential_password(std::string_view password) noexcept {
  return !password.empty() && !has_control(password);
}

bool is_bearer_token(std::string_view text) noexcept {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~+/").find(c) != std::string_view::npos;
  });
}

const char* parse_credential(std::string_view line, Credential& out) noexcept {
  const std::string_view kind = take_word(line), name = take_word(line), how = take_word(line);
  if (kind != "basic" && kind != "bearer") return "it begins with neither 'basic' nor 'bearer'";
  if (!is_credential_name(name)) return "the name is missing, too long, or holds a colon";
  out = Credential();
  memcpy(out.name, name.data(), name.size());
  out.name_size = static_cast<std::uint8_t>(name.size());
  if (kind == "basic") {
    if (how != "pbkdf2-sha256") return "the hash is not 'pbkdf2-sha256'";
    const auto iterations = parse_integer(take_word(line));
    if (!iterations || *iterations < Credential::kFewestIterations || *iterations > Credential::kMostIterations)
      return "the iterations are not a number from 1000 to 10000000";
    out.iterations = static_cast<std::uint32_t>(*iterations);
    out.salt_size = static_cast<std::uint8_t>(read_hex(take_word(line), out.salt, sizeof out.salt));
    if (out.salt_size < 8) return "the salt is not 16 to 64 hexadecimal digits";
  } else if (how != "sha256") {
    return "the hash is not 'sha256'";
  }
  if (read_hex(take_word(line), reinterpret_cast<char*>(out.hash.data()), kDigestBytes) != kDigestBytes)
    return "the hash is not 64 hexadecimal digits";
  return take_word(line).empty() ? nullptr : "something follows the hash";
}

}  // namespace coir::http
