#include <coir/format.h>
#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <coir/port/beneath.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "http/files/changes.h"
#include "http/files/file_cache.h"
#include "http/files/listing.h"
#include "http/files/open_file.h"
#include "http/files/target.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

constexpr std::string_view kAllowReads = "Allow: GET, HEAD, OPTIONS\r\n";
constexpr std::string_view kAllowChanges = "Allow: GET, HEAD, PUT, DELETE, OPTIONS\r\n";
constexpr std::string_view kIndex = "index.html";
// Room behind a path for "/index.html" and the suffix of a compressed form.
constexpr std::size_t kRoomBehind = 1 + kIndex.size() + 4;
static_assert(FileCache::kPathBytes + kRoomBehind < kContentAt);

// redirect_to_directory answers 301 to the same path with a slash. One leading slash is kept: "//host/" would be
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

// is_hidden tells whether a part of the path, which is resolved, has a dot in front. The root itself is ".".
[[gnu::always_inline]] inline bool is_hidden(std::string_view path) noexcept {
  constexpr std::string_view kWellKnown = ".well-known";
  if (path == ".") return false;
  if (path.starts_with(kWellKnown) && (path.size() == kWellKnown.size() || path[kWellKnown.size()] == '/')) {
    path.remove_prefix(kWellKnown.size());
  }
  return path.starts_with('.') || path.find("/.") != path.npos;
}

// is_shown tells whether a resolved path that is hidden may be asked for. The temporary files of a replacement never
// may.
[[gnu::noinline]] bool is_shown(const FileTreeOptions& options, std::string_view path) noexcept {
  constexpr std::string_view kTemporary = "/.coir-";
  return options.dot_files && !path.starts_with(kTemporary.substr(1)) && path.find(kTemporary) == path.npos;
}

// path_within cuts the folder that may be changed off a resolved path; empty: the path does not lie below it.
std::string_view path_within(const char* folder, std::string_view path) noexcept {
  std::string_view prefix = folder;
  while (prefix.starts_with('/')) prefix.remove_prefix(1);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty() || prefix == ".") return path == "." ? std::string_view() : path;
  if (path.size() <= prefix.size() || !path.starts_with(prefix) || path[prefix.size()] != '/') return {};
  return path.substr(prefix.size() + 1);
}

}  // namespace

void FileTree::serve(Exchange& exchange) noexcept {
  if (!opened_) return exchange.respond_status(503);
  const Request& request = exchange.request();
  const std::span<char> scratch = exchange.scratch();
  const ResolvedPath resolved = resolve_path(request.path, scratch);
  if (resolved.status != 0 && request.method != Method::options) return refuse(exchange, resolved.status);
  if (request.method != Method::get && request.method != Method::head) return serve_other(exchange, resolved);
  if (is_hidden(resolved.relative) && !is_shown(options_, resolved.relative)) return refuse(exchange, 404);
  if (resolved.relative.size() <= FileCache::kPathBytes) {
    FileFacts cached;
    const std::span<char> content = scratch.subspan(kContentAt, kCachedFileBytes);
    if (cache_->find(resolved.relative, resolved.directory, exchange.now(), cached, content)) {
      if (!kSite || cached.others == 0) return respond(exchange, cached, content.data(), -1);
      if (serve_cached_form(exchange, resolved, cached)) return;
    }
  }
  serve_file(exchange, resolved);
}

// serve_other answers what is no GET.
[[gnu::noinline]] void FileTree::serve_other(Exchange& exchange, const ResolvedPath& resolved) noexcept {
  const Method method = exchange.request().method;
  std::string_view within;
  if (kSite && writable_ >= 0 && resolved.status == 0) within = path_within(options_.writable, resolved.relative);
  const bool changes = !within.empty() && !resolved.directory;
  const std::string_view allow = changes ? kAllowChanges : kAllowReads;
  if (method == Method::options) {
    exchange.start(204).fixed(allow);
    static_cast<void>(exchange.begin_empty());
    return;
  }
  if (!changes || (method != Method::put && method != Method::del)) return refuse(exchange, 405, allow);
  if (is_hidden(resolved.relative) && !is_shown(options_, resolved.relative)) return refuse(exchange, 404);
  if constexpr (kSite) change(exchange, within);
}

// serve_file looks the file up.
[[gnu::noinline]] void FileTree::serve_file(Exchange& exchange, const ResolvedPath& resolved) noexcept {
  Target target = {.path = resolved.relative,
                   .directory = resolved.directory,
                   .cacheable = resolved.relative.size() <= FileCache::kPathBytes,
                   .changes_seen = cache_->count_of_changes(),
                   .scratch = exchange.scratch(),
                   .file = resolved.relative};
  const std::size_t size = target.path.size();
  if (size + kRoomBehind > target.scratch.size()) return refuse(exchange, 414);
  OpenFile file(open_with_room(exchange, root_, target.path.data(), target.work()));
  struct stat info;
  if (int outcome = file.fd() < 0 ? file.fd() : kernel::file_status(file.fd(), info); outcome < 0) {
    return refuse_file(exchange, target, outcome);
  }
  if (!S_ISDIR(info.st_mode)) {
    if (resolved.directory) return refuse_file(exchange, target, -ENOTDIR);
    return serve_opened(exchange, target, file);
  }
  if (!resolved.directory) return redirect_to_directory(exchange);
  // openat needs the whole path again, for the root is where links may not lead out of.
  char* const end = target.scratch.data() + size;
  *end = '/';
  memcpy(end + 1, kIndex.data(), kIndex.size() + 1);
  target.file = {target.scratch.data(), size + 1 + kIndex.size()};
  OpenFile index(open_with_room(exchange, root_, target.file.data(), target.work()));
  if (index.fd() >= 0) return serve_opened(exchange, target, index);
  if (kSite && index.fd() == -ENOENT && options_.index) {
    *end = '\0';
    return list_folder(exchange, file, target.path, options_.dot_files);
  }
  refuse_file(exchange, target, index.fd());
}

void FileTree::refuse_file(Exchange& exchange, const Target& target, int negative_errno) noexcept {
  if (target.cacheable) cache_->drop(target.path, target.directory);
  const int status = status_of(negative_errno);
  refuse(exchange, status, status == 503 ? "Retry-After: 1\r\n" : "");
}

FileTree::FileTree(const char* root, const FileTreeOptions& options) noexcept : options_(options), opened_(open(root)) {
  // The last byte stays NUL.
  if (!opened_)
    format(std::span(problem_).first<sizeof problem_ - 1>(), "files of '", cut(root, 80), "': ", opened_.error());
}

std::expected<void, Error> FileTree::open(const char* root) noexcept {
  if (options_.cache.size() > 255) return std::unexpected(Error{ErrorCode::invalid});
  const bool plain =
      !options_.index && options_.cache.empty() && options_.error_pages.empty() && options_.writable == nullptr;
  if (!kSite && !plain) return std::unexpected(Error{ErrorCode::unsupported});
  root_ = ::open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_ < 0) return std::unexpected(Error::from_errno(errno));
  if (kSite && options_.writable != nullptr) {
    const auto writable = open_writable(root_, options_.writable);
    if (!writable) return std::unexpected(writable.error());
    writable_ = *writable;
  }
  cache_ = FileCache::create(options_.cached_files);
  if (cache_ == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return {};
}

FileTree::~FileTree() {
  if (root_ >= 0) ::close(root_);
  if (writable_ >= 0) ::close(writable_);
  if (cache_ != nullptr) FileCache::destroy(cache_);
}

std::size_t FileTree::cached_bytes() const noexcept {
  return cache_ != nullptr ? cache_->bytes() : 0;
}

std::span<char> FileTree::Target::work() const noexcept {
  return scratch.subspan(std::max(kContentAt, file.size() + kRoomBehind));
}

std::string_view FileTree::Target::name() const noexcept {
  return file.substr(file.rfind('/') + 1);
}

}  // namespace coir::http
