#include "tls/certificate_file.h"

#include <coir/file.h>
#include <coir/format.h>
#include <coir/net/certificates.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace coir {

namespace {

// make_folder makes the folder that a file is to lie in, and no more than that.
std::expected<void, Error> make_folder(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos || slash == 0) return {};
  char folder[512];
  if (slash >= sizeof folder) return std::unexpected(Error::from_errno(ENAMETOOLONG));
  path.copy(folder, slash);
  folder[slash] = '\0';
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return std::unexpected(Error::from_errno(errno));
  return {};
}

std::expected<std::size_t, Error> make_file(const char* path, std::span<char> text) noexcept {
  char host[64] = {};
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') strcpy(host, "localhost");
  const std::string_view names[] = {host, "localhost", "127.0.0.1"};
  SelfSigned made;
  if (auto done = make_self_signed(names, made); !done) return std::unexpected(done.error());
  const std::size_t size = format(text, made.certificate, made.key).size();
  explicit_bzero(&made, sizeof made);
  if (auto done = make_folder(path); !done) return std::unexpected(done.error());
  if (auto done = replace_file(path, text.first(size), 0600); !done) return std::unexpected(done.error());
  return size;
}

}  // namespace

std::expected<TlsContext, Error> load_certificate_file(const char* path) noexcept {
  static char text[16 * 1024];  // with a NUL behind what it holds; one call at a time
  const std::span<char> room(text, sizeof text - 1);
  auto file = File::open(path);
  if (!file && file.error() != ErrorCode::not_found) return std::unexpected(file.error());
  const auto size = file ? file->read_all(room) : make_file(path, room);
  if (!size) return std::unexpected(size.error());
  text[*size] = '\0';
  const std::string_view pem(text, *size);
  const TlsCertificate certificates[] = {{.chain = pem, .key = pem}};
  auto context = TlsContext::server({.certificates = certificates});
  explicit_bzero(text, sizeof text);
  return context;
}

}  // namespace coir
