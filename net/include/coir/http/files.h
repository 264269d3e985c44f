#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/program.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

namespace coir::http {

class FileCache;

// FileTreeOptions is what a FileTree keeps and shows.
struct FileTreeOptions {
  // Small files are kept in memory, whole: this many of at most kCachedFileBytes. 0 keeps none.
  std::size_t cached_files = kFibers ? 64 : 16;
  // Serves what has a dot in front of its name, and what lies in such a folder: ".git", ".htpasswd". Without, it is
  // 404;
  // "/.well-known/" (RFC 8615) is served either way.
  bool dot_files = false;
};

// FileTree answers requests with the files below a directory.
//
//   auto files = FileTree::open("/srv/www");
//   files->serve(exchange);                       // in a handler
//
// No path leaves the directory, symbolic links that point out of it included: the kernel resolves beneath the root
// (openat2), or the path is walked component by component without following where the kernel is older than 5.6. Only
// regular files are served, and nothing else is opened; a directory answers with its index.html, and with a redirection
// when the target lacks the final slash. GET, HEAD and OPTIONS; ranges and conditions as RFC 9110 has them.
//
// A small file is kept in memory with what its head says, and looked at again once a second at most: until then serving
// it costs no system call but the socket's. Other files are read by the kernel (sendfile); a disk that is slow holds up
// the worker.
class FileTree {
 public:
  static constexpr std::size_t kCachedFileBytes = 4096;

  // open opens the directory and reserves the memory. Errors: not_found, no_memory, limit (no descriptor is left),
  // system (ENOTDIR, EACCES ...).
  [[nodiscard]] static std::expected<FileTree, Error> open(const char* root, const FileTreeOptions& options) noexcept;
  [[nodiscard]] static std::expected<FileTree, Error> open(const char* root) noexcept {
    return open(root, FileTreeOptions());
  }

  FileTree(FileTree&& other) noexcept
      : root_(std::exchange(other.root_, -1)),
        cache_(std::exchange(other.cache_, nullptr)),
        dot_files_(other.dot_files_) {}
  FileTree& operator=(FileTree&&) = delete;
  ~FileTree();

  // serve answers the exchange; from several fibers and workers at once. It uses the exchange's scratch memory.
  void serve(Exchange& exchange) noexcept;

  // cached_bytes is how much of the files' content is in memory.
  std::size_t cached_bytes() const noexcept;

 private:
  FileTree(int root, FileCache* cache, bool dot_files) noexcept : root_(root), cache_(cache), dot_files_(dot_files) {}

  int root_;
  FileCache* cache_;
  bool dot_files_;
};

}  // namespace coir::http
