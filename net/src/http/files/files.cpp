#include <coir/http/conditional.h>
#include <coir/http/files.h>
#include <coir/http/mime.h>
#include <coir/http/path.h>
#include <coir/http/range.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "http/files/beneath.h"
#include "http/files/file_cache.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

constexpr std::string_view kAllow = "Allow: GET, HEAD, OPTIONS\r\n";
constexpr std::string_view kIndex = "index.html";
// The exchange's scratch memory holds the path in front, the content of a cached file behind it; a path that reaches
// into the latter is too long for the cache.
constexpr std::size_t kContentAt = 256;
static_assert(FileCache::kPathBytes < kContentAt);

// OpenFile closes its descriptor. Reads of files never park, so that plain close serves.
class OpenFile {
 public:
  explicit OpenFile(int fd) noexcept : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { reset(-1); }
  void reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

int status_of(int negative_errno) noexcept {
  switch (-negative_errno) {
    case EACCES:
    case EPERM:
      return 403;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return 503;
    case EIO:
      return 500;
    default:
      return 404;
  }
}

// open_with_room is open_beneath; idle connections make room where descriptors are short.
int open_with_room(Exchange& exchange, int root, const char* relative, std::span<char> work) noexcept {
  for (;;) {
    const int fd = open_beneath(root, relative, work);
    if ((fd != -EMFILE && fd != -ENFILE) || !exchange.free_descriptor()) return fd;
  }
}

void refuse(Exchange& exchange, int status) noexcept {
  exchange.respond_status(status, status == 503 ? "Retry-After: 1\r\n" : "");
}

// redirect_to_directory answers 301 to the same path with a slash. Of leading slashes one is left: "//host/" would be
// another server.
void redirect_to_directory(Exchange& exchange) noexcept {
  const Request& request = exchange.request();
  std::string_view path = request.path;
  while (path.starts_with("//")) path.remove_prefix(1);
  const std::span<char> scratch = exchange.scratch();
  const std::size_t size = path.size() + 1 + (request.query.data() != nullptr ? 1 + request.query.size() : 0);
  if (size > scratch.size()) return exchange.respond_status(414);
  char* at = scratch.data();
  memcpy(at, path.data(), path.size());
  at += path.size();
  *at++ = '/';
  if (request.query.data() != nullptr) {
    *at++ = '?';
    memcpy(at, request.query.data(), request.query.size());
    at += request.query.size();
  }
  ResponseHead& head = exchange.start(301);
  head.field("Location", {scratch.data(), at});
  static_cast<void>(exchange.begin_fixed(0));
}

// respond answers with a file whose content is in memory (`content`), or else in `file`.
void respond(Exchange& exchange, const FileFacts& facts, const char* content, int file) noexcept {
  const Request& request = exchange.request();
  const Validators validators = {.etag = facts.etag.text(), .modified = facts.modified, .stable = !facts.etag.weak()};
  const PreconditionResult outcome = evaluate(request, validators, exchange.now());
  if (outcome.precondition == Precondition::failed) return exchange.respond_status(412);
  if (outcome.precondition == Precondition::not_modified) {
    exchange.start(304).fixed(facts.validator_lines());
    static_cast<void>(exchange.begin_empty());
    return;
  }
  Range range;
  if (outcome.range_applies && request.method == Method::get) range = parse_range(request.range, facts.size);
  char content_range[kContentRangeBytes];
  if (range.kind == Range::Kind::unsatisfiable) {
    ResponseHead& head = exchange.start(416);
    head.field("Content-Range", write_content_range(range, facts.size, content_range));
    static_cast<void>(exchange.begin_fixed(0));
    return;
  }
  const bool part = range.kind == Range::Kind::part;
  const std::uint64_t offset = part ? range.first : 0;
  const std::uint64_t bytes = part ? range.bytes() : facts.size;
  ResponseHead& head = exchange.start(part ? 206 : 200);
  head.fixed(facts.all_lines());
  if (part) head.field("Content-Range", write_content_range(range, facts.size, content_range));
  if (!exchange.begin_fixed(bytes)) return;
  if (content != nullptr) {
    static_cast<void>(exchange.write({content + offset, static_cast<std::size_t>(bytes)}));
  } else {
    static_cast<void>(exchange.send_file(file, offset, bytes));
  }
}

// is_hidden tells whether a part of the path, which is resolved, has a dot in front. The root itself is ".".
bool is_hidden(std::string_view path) noexcept {
  constexpr std::string_view kWellKnown = ".well-known";
  if (path == ".") return false;
  if (path.starts_with(kWellKnown) && (path.size() == kWellKnown.size() || path[kWellKnown.size()] == '/')) {
    path.remove_prefix(kWellKnown.size());
  }
  return path.starts_with('.') || path.find("/.") != path.npos;
}

// read_whole returns whether the file had exactly `size` bytes to read.
bool read_whole(int file, char* into, std::size_t size) noexcept {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = kernel::read_at(file, into + have, size - have, have);
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

void FileTree::serve(Exchange& exchange) noexcept {
  const Request& request = exchange.request();
  if (request.method == Method::options) {
    exchange.start(204).fixed(kAllow);
    static_cast<void>(exchange.begin_empty());
    return;
  }
  if (request.method != Method::get && request.method != Method::head) return exchange.respond_status(405, kAllow);

  const std::span<char> scratch = exchange.scratch();
  const ResolvedPath resolved = resolve_path(request.path, scratch);
  if (resolved.status != 0) return exchange.respond_status(resolved.status);
  const std::string_view path = resolved.relative;
  if (!dot_files_ && is_hidden(path)) return exchange.respond_status(404);
  const bool cacheable = path.size() <= FileCache::kPathBytes;
  const std::span<char> content = scratch.subspan(kContentAt, kCachedFileBytes);

  if (cacheable) {
    FileFacts cached;
    if (cache_->find(path, resolved.directory, exchange.now(), cached, content)) {
      return respond(exchange, cached, content.data(), -1);
    }
  }

  const std::span<char> work = cacheable ? scratch.subspan(kContentAt) : scratch.subspan(path.size() + 1);
  OpenFile file(open_with_room(exchange, root_, path.data(), work));
  struct stat info;
  int outcome = file.fd() < 0 ? file.fd() : kernel::file_status(file.fd(), info);
  std::string_view name = path;
  if (outcome == 0 && S_ISDIR(info.st_mode)) {
    if (!resolved.directory) return redirect_to_directory(exchange);
    // openat needs the whole path again, for the root is where links may not lead out of.
    char* const end = scratch.data() + path.size();
    if (path.size() + 1 + kIndex.size() + 1 > scratch.size()) return exchange.respond_status(414);
    *end = '/';
    memcpy(end + 1, kIndex.data(), kIndex.size());
    end[1 + kIndex.size()] = '\0';
    file.reset(open_with_room(exchange, root_, scratch.data(), work.subspan(cacheable ? 0 : 1 + kIndex.size())));
    outcome = file.fd() < 0 ? file.fd() : kernel::file_status(file.fd(), info);
    name = kIndex;
  } else if (resolved.directory) {
    outcome = outcome < 0 ? outcome : -ENOTDIR;
  }
  if (outcome == 0 && !S_ISREG(info.st_mode)) outcome = -ENOENT;
  if (outcome < 0) {
    if (cacheable) cache_->drop(path, resolved.directory);
    return refuse(exchange, status_of(outcome));
  }

  const FileFacts facts = FileFacts::of(info, media_type(name), exchange.now());
  if (cacheable && facts.size <= kCachedFileBytes) {
    if (!read_whole(file.fd(), content.data(), static_cast<std::size_t>(facts.size)))
      return exchange.respond_status(500);
    cache_->put(path, resolved.directory, exchange.now(), facts,
                {content.data(), static_cast<std::size_t>(facts.size)});
    return respond(exchange, facts, content.data(), -1);
  }
  if (cacheable) cache_->drop(path, resolved.directory);
  respond(exchange, facts, nullptr, file.fd());
}

std::expected<FileTree, Error> FileTree::open(const char* root, const FileTreeOptions& options) noexcept {
  const int fd = ::open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return std::unexpected(Error::from_errno(errno));
  FileCache* cache = FileCache::create(options.cached_files);
  if (cache == nullptr) {
    ::close(fd);
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  return FileTree(fd, cache, options.dot_files);
}

FileTree::~FileTree() {
  if (root_ < 0) return;
  ::close(root_);
  FileCache::destroy(cache_);
}

std::size_t FileTree::cached_bytes() const noexcept {
  return cache_->bytes();
}

}  // namespace coir::http
