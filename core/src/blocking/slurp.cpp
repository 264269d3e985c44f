#include <coir/file.h>

#include <errno.h>

#include <coir/utf8.h>

namespace coir {

std::expected<FileBytes, Error> slurp(const char* path, Account& account, std::size_t most,
                                      Deadline deadline) noexcept {
  const auto file = File::open(path, {}, deadline);
  if (!file) return std::unexpected(file.error());
  auto bytes = file->read_all(account, most, deadline);
  if (bytes && !is_utf8(bytes->text())) return std::unexpected(Error{ErrorCode::invalid, EILSEQ});
  return bytes;
}

std::expected<std::string_view, Error> slurp(const char* path, std::span<char> into, Deadline deadline) noexcept {
  const auto file = File::open(path, {}, deadline);
  if (!file) return std::unexpected(file.error());
  const auto size = file->read_all(into, deadline);
  if (!size) return std::unexpected(size.error());
  const std::string_view text(into.data(), *size);
  if (!is_utf8(text)) return std::unexpected(Error{ErrorCode::invalid, EILSEQ});
  return text;
}

}  // namespace coir
