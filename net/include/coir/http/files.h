#pragma once

// Files below a folder.
//
//   auto app = routes(any<"/{path...}">(FileTree{"/srv/www"}));
//   return serve({.listen = ":8080"}, app);

#include <coir/config.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/program.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::http {

class FileCache;
class OpenFile;
struct MetricsPart;
struct FileFacts;
struct ResolvedPath;

// kSite tells whether this build has what a web site wants of its files beside their content (COIR_SITE): compressed
// forms, and what FileTreeOptions names from `index` on.
inline constexpr bool kSite = COIR_SITE;

// CacheRule is what Cache-Control says of the files whose path fits. '*' in the pattern stands for any run of
// characters, slashes included, '?' for any one; a pattern that begins with '/' is compared with the whole path below
// the root, another with the file's name. `value` is visible text.
struct CacheRule {
  std::string_view pattern;
  std::string_view value;
};

// ErrorPage is a file below the root, with or without a slash in front, that answers a status instead of its words.
struct ErrorPage {
  int status;
  const char* path;
};

// FileTreeOptions says what a FileTree keeps and shows. Everything it points to must outlive the tree.
struct FileTreeOptions {
  // Small files are kept in memory, whole: this many of at most kCachedFileBytes. 0 keeps none.
  std::size_t cached_files = kFibers ? 64 : 16;
  // Serves files and folders whose names begin with a dot, and what such a folder holds: ".git", ".htpasswd". Without
  // dot_files they are answered 404. "/.well-known/" (RFC 8615) is served either way.
  bool dot_files = false;
  // Answers a directory without index.html with a list of what lies in it.
  bool index = false;
  // The first rule that fits a file counts; at most 255.
  std::span<const CacheRule> cache = {};
  std::span<const ErrorPage> error_pages = {};
  // A folder below the root ("/" for the root itself) in which PUT and DELETE change files. The tree checks no
  // permission: let only authorised requests reach it.
  const char* writable = nullptr;
};

// FileTree answers requests with the files below a directory.
//
// No path leaves the directory, symbolic links that point out of it included: the kernel resolves beneath the root
// (openat2), or the path is walked component by component without following where the kernel is older than 5.6. Only
// regular files are served, and nothing else is opened; a directory answers with its index.html, and with a redirection
// when the target lacks the final slash. GET, HEAD and OPTIONS; ranges and conditions as RFC 9110 has them.
//
// Beside "app.js" may lie "app.js.br" and "app.js.gz", compressed beforehand and not more than two seconds older: with
// kSite a client that accepts one is sent it, with a tag of its own. Files of types that are compressed anyway have no
// such forms.
//
// A small file is kept in memory with what its head says, and looked at again once a second at most: until then serving
// it costs no system call but the socket's. Other files are read by the kernel (sendfile); what is not in its memory
// yet a thread of the blocking pool reads first, so that a slow disk holds up nobody else.
class FileTree {
 public:
  struct Target;  // src/http/files/target.h

  static constexpr std::size_t kCachedFileBytes = 4096;

  // This opens the directory and reserves the memory; in the writable folder it removes what a process that was killed
  // has left of a PUT.
  explicit FileTree(const char* root, const FileTreeOptions& options = {}) noexcept;

  FileTree(FileTree&& other) noexcept
      : root_(std::exchange(other.root_, -1)),
        writable_(std::exchange(other.writable_, -1)),
        cache_(std::exchange(other.cache_, nullptr)),
        options_(other.options_),
        opened_(other.opened_) {
    problem_[other.problem().copy(problem_, sizeof problem_ - 1)] = '\0';
  }
  FileTree& operator=(FileTree&&) = delete;
  ~FileTree();

  // problem names the directory that cannot be served, for a log; empty: none. serve of coir/http/serve.h does not start
  // with a problem, and prints it; else exchanges are answered 503.
  std::string_view problem() const noexcept { return problem_; }

  // opened tells the same for a program. Errors: not_found, no_memory, limit (no descriptor is left), invalid (more than
  // 255 rules), unsupported (an option of kSite in a build without), system (ENOTDIR, EACCES ...).
  [[nodiscard]] std::expected<void, Error> opened() const noexcept { return opened_; }

  // serve answers the exchange; from several fibers and workers at once. It uses the exchange's scratch memory.
  void serve(Exchange& exchange) noexcept;
  void operator()(Exchange& exchange) noexcept { serve(exchange); }

  // refuse answers by `status`: with its error page, if there is one that can be read, else with its words. `fields`
  // are further header lines, each ended by CRLF, trusted.
  void refuse(Exchange& exchange, int status, std::string_view fields = {}) noexcept;

  // has tells whether a regular file lies at `path` below the root, for an error page to be checked before it is
  // wanted. Errors: not_found, limit (no descriptor is left), system.
  [[nodiscard]] std::expected<void, Error> has(const char* path) noexcept;

  // cached_bytes is how much of the files' content is in memory.
  std::size_t cached_bytes() const noexcept;

 private:
  std::expected<void, Error> open(const char* root) noexcept;
  void serve_other(Exchange& exchange, const ResolvedPath& resolved) noexcept;
  void serve_file(Exchange& exchange, const ResolvedPath& resolved) noexcept;
  void refuse_file(Exchange& exchange, const Target& target, int negative_errno) noexcept;
  void change(Exchange& exchange, std::string_view path) noexcept;  // changes.cpp
  // file_answer.cpp; refuse and has are in error_page.cpp
  bool serve_cached_form(Exchange& exchange, const ResolvedPath& resolved, FileFacts& facts) noexcept;
  void serve_opened(Exchange& exchange, const Target& target, OpenFile& file) noexcept;
  void respond(Exchange& exchange, const FileFacts& facts, const char* content, int file) noexcept;
  void add_lines(ResponseHead& head, const FileFacts& facts) noexcept;
  void send_form(Exchange& exchange, const Target& target, const FileFacts& plain, OpenFile& file) noexcept;
  std::uint8_t rule_of(std::string_view path) const noexcept;

  int root_ = -1;
  int writable_ = -1;           // the folder that may be changed; -1: none
  FileCache* cache_ = nullptr;  // null: not opened
  FileTreeOptions options_;
  std::expected<void, Error> opened_;
  char problem_[120] = {};
};

// metrics_part (part_metrics.cpp) is for Metrics::add of coir/http/metrics.h.
MetricsPart metrics_part(FileTree& files) noexcept;

}  // namespace coir::http
