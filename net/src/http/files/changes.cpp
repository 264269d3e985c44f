// FileTree::change, of coir/http/files.h: PUT and DELETE.

#include "http/files/changes.h"

#include <coir/blocking.h>
#include <coir/file.h>
#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <coir/http/wire/representation.h>
#include <coir/port/beneath.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/files/file_cache.h"
#include "http/files/folder_entries.h"
#include "http/files/open_file.h"
#include "http/files/target.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

// Place is where a file lies or will lie: its folder, open by name only, and its name there.
struct Place {
  OpenFile folder;
  const char* name = nullptr;
  const char* path = nullptr;  // of both, below the writable folder
  std::span<char> work;        // behind the path, in scratch memory
  struct stat info;            // of what lies there; a link is looked at itself
  bool exists = false;
};

// refused_change looks at the preconditions again: at the start, and when the content has arrived. It returns the status
// that refuses the change, 0 if there is none. A file that cannot be opened for want of a descriptor is there.
int refused_change(Exchange& exchange, int writable, const Place& place) noexcept {
  const OpenFile file(open_with_room(exchange, writable, place.path, place.work));
  if (status_of(file.fd()) == 503) return 503;
  struct stat info;
  Validators validators = {.has_modified = false, .exists = false};
  FileFacts facts;
  if (file.fd() >= 0 && kernel::file_status(file.fd(), info) == 0) {
    facts = FileFacts::of(info, {}, exchange.now());
    validators = {.etag = facts.etag.text(), .modified = facts.modified, .stable = !facts.etag.weak()};
  }
  return evaluate(exchange.request(), validators, exchange.now()).precondition == Precondition::proceed ? 0 : 412;
}

int status_of_change(Error error) noexcept {
  switch (error.sys) {
    case 0:
      return 503;
    case EISDIR:
      return 405;
    case ENAMETOOLONG:
      return 414;
    case ENOENT:
    case ENOTDIR:
      return 409;
    default:
      const int status = status_of(-error.sys);
      return status == 404 ? 500 : status;
  }
}

// receive takes the content into the replacement. Returns the status of what failed on this side, 0 when all has been
// written, and -1 where the client's side failed, which the server answers.
int receive(Exchange& exchange, FileReplacement& file, std::span<char> memory) noexcept {
  for (;;) {
    const auto got = exchange.read_body(memory);
    if (!got) return got.error() == ErrorCode::end_of_stream ? 0 : -1;
    if (auto written = file.write(memory.first(*got)); !written) return status_of_change(written.error());
  }
}

// remove takes the name away for good. May block.
int remove(const Place& place) noexcept {
  const OpenFile folder(::openat(place.folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0 || ::unlinkat(folder.fd(), place.name, 0) != 0) return -errno;
  ::fsync(folder.fd());
  return 0;
}

// refused_content is the status for content that cannot become a file's, 0 if it can.
int refused_content(const Request& request) noexcept {
  if (request.framing == Framing::none) return 411;
  if (request.header("Content-Range").data() != nullptr) return 400;
  const std::string_view coding = request.header("Content-Encoding");
  return coding.data() == nullptr || equals_ignoring_case(coding, "identity") ? 0 : 415;
}

void sweep(int folder, int depth) noexcept {
  constexpr int kDeepest = 32;
  const bool may_sweep = FileReplacement::may_sweep(folder);
  alignas(8) char memory[512];
  FolderEntries entries(folder, memory);
  while (const auto entry = entries.next()) {
    if (may_sweep && entry->type == FolderEntries::Type::file && FileReplacement::is_temporary(entry->name)) {
      ::unlinkat(folder, entry->name.data(), 0);
    } else if (entry->type == FolderEntries::Type::folder && depth < kDeepest) {
      const OpenFile inner(::openat(folder, entry->name.data(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner.fd() >= 0) sweep(inner.fd(), depth + 1);
    }
  }
}

}  // namespace

void FileTree::change(Exchange& exchange, std::string_view path) noexcept {
  constexpr std::string_view kAllow = "Allow: GET, HEAD, OPTIONS\r\n";
  const bool puts = exchange.request().method == Method::put;
  const std::span<char> scratch = exchange.scratch();
  Place place;
  place.path = path.data();
  place.work = scratch.subspan(static_cast<std::size_t>(path.data() - scratch.data()) + path.size() + 1);
  const std::size_t slash = path.rfind('/');
  place.name = path.data() + (slash == path.npos ? 0 : slash + 1);
  if (slash != path.npos) scratch[static_cast<std::size_t>(path.data() - scratch.data()) + slash] = '\0';
  place.folder.reset(open_with_room(exchange, writable_, slash == path.npos ? "." : path.data(), place.work));
  if (slash != path.npos) scratch[static_cast<std::size_t>(path.data() - scratch.data()) + slash] = '/';
  if (place.folder.fd() < 0) {
    const int code = -place.folder.fd();
    return refuse(exchange, puts && (code == ENOENT || code == ENOTDIR) ? 409 : status_of(-code));
  }
  place.exists = ::fstatat(place.folder.fd(), place.name, &place.info, AT_SYMLINK_NOFOLLOW) == 0;
  if (!place.exists && errno == ENOTDIR) return refuse(exchange, puts ? 409 : 404);
  if (place.exists && !S_ISREG(place.info.st_mode) && !S_ISLNK(place.info.st_mode))
    return refuse(exchange, 405, kAllow);
  if (!puts && !place.exists) return refuse(exchange, 404);
  if (const int status = puts ? refused_content(exchange.request()) : 0; status != 0) return refuse(exchange, status);
  if (const int status = refused_change(exchange, writable_, place); status != 0) return refuse(exchange, status);

  FileReplacement file;
  if (puts) {
    std::expected<FileReplacement, Error> begun = std::unexpected(Error{});
    with_room(exchange, [&] {
      begun = FileReplacement::begin_at(place.folder.fd(), place.name);
      return begun ? 0 : -begun.error().sys;
    });
    if (!begun) return refuse(exchange, status_of_change(begun.error()));
    file = std::move(*begun);
    if (const int status = receive(exchange, file, place.work); status != 0) {
      if (status > 0) refuse(exchange, status);
      return;
    }
  }
  const auto turn = cache_->changes.lock();
  if (!turn) return refuse(exchange, 503, "Retry-After: 1\r\n");
  if (const int status = refused_change(exchange, writable_, place); status != 0) {
    file.abort();
    return refuse(exchange, status);
  }
  if (puts) {
    if (auto committed = file.commit(); !committed) return refuse(exchange, status_of_change(committed.error()));
  } else {
    const int removed = with_room(exchange, [&] {
      return blocking_borrowed([&](const BlockingStop&) { return remove(place); }).value_or(-ENOMEM);
    });
    if (removed != 0) return refuse(exchange, status_of(removed));
  }
  cache_->forget_all();
  if (puts && !place.exists) return exchange.respond(201, {}, {});
  exchange.start(204);
  static_cast<void>(exchange.begin_empty());
}

std::expected<int, Error> open_writable(int root, const char* folder) noexcept {
  char work[512];
  while (*folder == '/') ++folder;
  OpenFile found(port::open_beneath(root, *folder == '\0' ? "." : folder, work));
  if (found.fd() < 0) return std::unexpected(Error::from_errno(-found.fd()));
  const OpenFile readable(::openat(found.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (readable.fd() < 0) return std::unexpected(Error::from_errno(errno));
  sweep(readable.fd(), 0);
  return found.release();
}

}  // namespace coir::http
