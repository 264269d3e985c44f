// FileTree, of coir/http/files.h: what is answered with a file that was found.

#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <coir/http/wire/representation.h>
#include <errno.h>
#include <string.h>

#include "http/files/file_cache.h"
#include "http/files/glob.h"
#include "http/files/open_file.h"
#include "http/files/target.h"
#include "socket/file_pages.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

constexpr std::string_view kSuffixes[kCodings] = {"", ".gz", ".br"};
constexpr std::string_view kEncodings[kCodings] = {"", "Content-Encoding: gzip\r\n", "Content-Encoding: br\r\n"};
constexpr std::string_view kVary = "Vary: Accept-Encoding\r\n";

// read_whole returns whether the file had exactly `size` bytes to read.
bool read_whole(int file, char* into, std::size_t size) noexcept {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = read_file(file, into + have, size - have, have);
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

// has_forms tells whether compressed forms of a type are worth looking for: not of what is compressed anyway.
bool has_forms(std::string_view type) noexcept {
  if constexpr (!kSite) return false;
  if (type.starts_with("text/") || type.starts_with("image/svg") || type.starts_with("image/bmp") ||
      type.starts_with("font/ttf") || type.starts_with("font/otf")) {
    return true;
  }
  return type == "application/json" || type == "application/xml" || type == "application/xhtml+xml" ||
         type == "application/wasm" || type == "application/octet-stream" || type == "application/x-tar" ||
         type == "application/vnd.apple.mpegurl" || type == "image/vnd.microsoft.icon";
}

// open_form opens a form of the file that `target` names; negative when there is none, or it is older than the file:
// then the file has been replaced, and the form has not.
int open_form(Exchange& exchange, int root, const FileTree::Target& target, Coding form, std::int64_t plain_modified,
              struct stat& info) noexcept {
  constexpr std::int64_t kGrace = 2;  // FAT counts in steps of two seconds
  const std::string_view suffix = kSuffixes[static_cast<unsigned>(form)];
  char* const end = target.scratch.data() + target.file.size();
  memcpy(end, suffix.data(), suffix.size());
  end[suffix.size()] = '\0';
  OpenFile file(open_with_room(exchange, root, target.scratch.data(), target.work()));
  *end = '\0';
  if (file.fd() < 0) return file.fd();
  if (kernel::file_status(file.fd(), info) != 0 || !S_ISREG(info.st_mode)) return -ENOENT;
  if (info.st_mtim.tv_sec + kGrace < plain_modified) return -ENOENT;
  return file.release();
}

}  // namespace

// respond answers with a file whose content is in memory (`content`), or else in `file`.
void FileTree::respond(Exchange& exchange, const FileFacts& facts, const char* content, int file) noexcept {
  const Request& request = exchange.request();
  const Validators validators = {.etag = facts.etag.text(), .modified = facts.modified, .stable = !facts.etag.weak()};
  const PreconditionResult outcome = evaluate(request, validators, exchange.now());
  if (outcome.precondition == Precondition::failed) return refuse(exchange, 412);
  if (outcome.precondition == Precondition::not_modified) {
    ResponseHead& head = exchange.start(304);
    head.fixed(facts.validator_lines());
    add_lines(head, facts);
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
  if (kSite && facts.has_more()) [[unlikely]] {
    head.fixed(kEncodings[static_cast<unsigned>(facts.form)]);
    add_lines(head, facts);
  }
  if (part) head.field("Content-Range", write_content_range(range, facts.size, content_range));
  if (!exchange.begin_fixed(bytes)) return;
  if (content != nullptr) {
    static_cast<void>(exchange.write({content + offset, static_cast<std::size_t>(bytes)}));
  } else {
    static_cast<void>(exchange.send_file(file, offset, bytes));
  }
}

// add_lines adds what a 304 repeats as well.
void FileTree::add_lines(ResponseHead& head, const FileFacts& facts) noexcept {
  if (!kSite) return;
  if (facts.varies) head.fixed(kVary);
  if (facts.cache_rule != 0) head.field("Cache-Control", options_.cache[facts.cache_rule - 1].value);
}

std::uint8_t FileTree::rule_of(std::string_view path) const noexcept {
  if (!kSite) return 0;
  std::uint8_t number = 0;
  for (const CacheRule& rule : options_.cache) {
    ++number;
    if (matches_glob(rule.pattern, path)) return number;
  }
  return 0;
}

// serve_cached_form answers with the form that the client wants of a file that was found in memory: `facts` and the
// exchange's scratch memory hold the plain one. False: that form is not in memory.
bool FileTree::serve_cached_form(Exchange& exchange, const ResolvedPath& resolved, FileFacts& facts) noexcept {
  const std::span<char> content = exchange.scratch().subspan(kContentAt, kCachedFileBytes);
  const auto form = AcceptedCodings(exchange.request()).best(facts.others | Coding::identity);
  if (!form) {
    refuse(exchange, 406, kVary);
    return true;
  }
  if (*form != Coding::identity &&
      !cache_->find(resolved.relative, resolved.directory, exchange.now(), facts, content, *form)) {
    return false;
  }
  respond(exchange, facts, content.data(), -1);
  return true;
}

// serve_opened answers with `file`, which target.file names, or with a form of it.
void FileTree::serve_opened(Exchange& exchange, const Target& target, OpenFile& file) noexcept {
  struct stat info;
  if (const int outcome = kernel::file_status(file.fd(), info); outcome < 0) {
    return refuse_file(exchange, target, outcome);
  }
  if (!S_ISREG(info.st_mode)) return refuse_file(exchange, target, -ENOENT);
  const std::string_view type = media_type(target.name());
  FileFacts facts = FileFacts::of(info, type, exchange.now());
  facts.cache_rule = rule_of(target.file);
  if (!target.cacheable || facts.size > kCachedFileBytes) {
    if (target.cacheable) cache_->drop(target.path, target.directory);
    facts.varies = has_forms(type);
    if (kSite && facts.varies) return send_form(exchange, target, facts, file);
    return respond(exchange, facts, nullptr, file.fd());
  }
  if (has_forms(type)) {
    for (const Coding form : {Coding::gzip, Coding::br}) {
      OpenFile found(open_form(exchange, root_, target, form, facts.modified, info));
      if (found.fd() >= 0) facts.others = facts.others | form;
    }
    facts.varies = facts.others != 0;
  }
  if (!read_whole(file.fd(), target.content().data(), static_cast<std::size_t>(facts.size)))
    return refuse(exchange, 500);
  const std::string_view content(target.content().data(), static_cast<std::size_t>(facts.size));
  cache_->put(target.path, target.directory, exchange.now(), facts, content, target.changes_seen);
  if (kSite && facts.varies) return send_form(exchange, target, facts, file);
  respond(exchange, facts, content.data(), -1);
}

// send_form answers with the form that the client wants most of those that are there. Only what it accepts is looked
// for.
void FileTree::send_form(Exchange& exchange, const Target& target, const FileFacts& plain, OpenFile& file) noexcept {
  const AcceptedCodings accepted(exchange.request());
  Codings left = Codings{} | Coding::identity | Coding::gzip | Coding::br;
  for (auto form = accepted.best(left); form; form = accepted.best(left)) {
    if (*form == Coding::identity) return respond(exchange, plain, nullptr, file.fd());
    struct stat info;
    OpenFile found(open_form(exchange, root_, target, *form, plain.modified, info));
    if (found.fd() < 0) {
      left = static_cast<Codings>(left & ~(Codings{} | *form));
      continue;
    }
    FileFacts facts = FileFacts::of(info, media_type(target.name()), exchange.now(), *form);
    facts.cache_rule = plain.cache_rule;
    facts.varies = true;
    if (plain.others == 0 || facts.size > kCachedFileBytes) return respond(exchange, facts, nullptr, found.fd());
    if (!read_whole(found.fd(), target.content().data(), static_cast<std::size_t>(facts.size)))
      return refuse(exchange, 500);
    const std::string_view content(target.content().data(), static_cast<std::size_t>(facts.size));
    cache_->put(target.path, target.directory, exchange.now(), facts, content, target.changes_seen);
    return respond(exchange, facts, content.data(), -1);
  }
  refuse(exchange, 406, kVary);
}

}  // namespace coir::http
