// Multipart::save: programs that store no part in a file do without it.

#include <coir/file.h>
#include <coir/http/content.h>

#include "http/files/open_file.h"

namespace coir::http {

std::expected<std::uint64_t, Error> Multipart::save(const char* path, std::optional<unsigned> mode) noexcept {
  const auto failed = [&](Error error) -> std::unexpected<Error> {
    failed_ = error;
    if (error.is_disk_full()) exchange_.respond_status(507);
    return std::unexpected(error);
  };
  std::expected<FileReplacement, Error> file = std::unexpected(Error{});
  with_room(exchange_, [&] {
    file = FileReplacement::begin(path, mode);
    return file ? 0 : -file.error().sys;
  });
  if (!file) return failed(file.error());
  std::uint64_t size = 0;
  for (;;) {
    const auto got = piece();
    if (!got && got.error() == ErrorCode::end_of_stream) break;
    if (!got) return std::unexpected(got.error());
    if (auto written = file->write(*got); !written) return failed(written.error());
    size += got->size();
  }
  if (auto committed = file->commit(); !committed) return failed(committed.error());
  return size;
}

}  // namespace coir::http
