// FileTree, of coir/http/files.h: what is answered instead of a file.

#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <coir/port/beneath.h>

#include "http/files/open_file.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

const char* relative(const char* path) noexcept {
  while (*path == '/') ++path;
  return path;
}

// send_page answers with the file at `path`. False: it cannot be read, and nothing was answered.
bool send_page(Exchange& exchange, int root, int status, const char* path, std::string_view fields) noexcept {
  OpenFile file(port::open_beneath(root, path, exchange.scratch()));
  struct stat info;
  if (file.fd() < 0 || kernel::file_status(file.fd(), info) != 0 || !S_ISREG(info.st_mode)) return false;
  ResponseHead& head = exchange.start(status);
  const std::string_view name = path;
  head.field("Content-Type", media_type(name.substr(name.rfind('/') + 1)));
  head.fixed(fields);
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (exchange.begin_fixed(bytes)) static_cast<void>(exchange.send_file(file.fd(), 0, bytes));
  return true;
}

}  // namespace

void FileTree::refuse(Exchange& exchange, int status, std::string_view fields) noexcept {
  for (const ErrorPage& page : kSite ? options_.error_pages : std::span<const ErrorPage>()) {
    if (page.status == status && send_page(exchange, root_, status, relative(page.path), fields)) return;
  }
  exchange.respond_status(status, fields);
}

std::expected<void, Error> FileTree::has(const char* path) noexcept {
  char work[512];
  const OpenFile file(port::open_beneath(root_, relative(path), work));
  struct stat info;
  int outcome = file.fd() < 0 ? file.fd() : kernel::file_status(file.fd(), info);
  if (outcome == 0 && !S_ISREG(info.st_mode)) outcome = -ENOENT;
  if (outcome != 0) return std::unexpected(Error::from_errno(-outcome));
  return {};
}

}  // namespace coir::http
