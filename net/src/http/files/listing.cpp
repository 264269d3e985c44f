#include "http/files/listing.h"

#include <coir/blocking.h>
#include <coir/detail/accounts.h>
#include <coir/file.h>
#include <coir/http/wire/query.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <new>

#include "http/files/folder_entries.h"
#include "http/files/name_list.h"
#include "http/files/open_file.h"

namespace coir::http {
namespace {

// ListingMemory is what a list takes while it is sent.
struct ListingMemory {
  static constexpr std::size_t kNames = 48 * 1024;

  NameList names{names_memory};
  char line[6 * 1024];  // of one name: a link of 3 bytes for each of its bytes, and a text of 6
  alignas(8) char entries[8 * 1024];
  alignas(2) char names_memory[kNames];

  // take returns nullptr where the ledger or the machine has no memory.
  static ListingMemory* take() noexcept {
    if (!Pressure::charge(account::files, kBytes)) return nullptr;
    if (void* const memory = port::reserve(kBytes)) return new (memory) ListingMemory();
    account::files.refund(kBytes);
    return nullptr;
  }
  static void give(ListingMemory* memory) noexcept {
    port::release(memory, kBytes);
    account::files.refund(kBytes);
  }

  ListingMemory() noexcept {}
  static const std::size_t kBytes;
};
constexpr std::size_t ListingMemory::kBytes = 64 * 1024;
static_assert(sizeof(ListingMemory) <= ListingMemory::kBytes);

// escape writes text for HTML, controls as U+FFFD, and returns the end.
char* escape(char* at, std::string_view text) noexcept {
  const auto add = [&](std::string_view piece) {
    memcpy(at, piece.data(), piece.size());
    at += piece.size();
  };
  for (const char c : text) {
    switch (c) {
      case '&':
        add("&amp;");
        break;
      case '<':
        add("&lt;");
        break;
      case '>':
        add("&gt;");
        break;
      case '"':
        add("&quot;");
        break;
      case '\'':
        add("&#39;");
        break;
      default:
        static_cast<unsigned char>(c) < ' ' || c == 0x7f ? add("\xef\xbf\xbd") : add({&c, 1});
    }
  }
  return at;
}

constexpr std::string_view kFields =
    "Content-Type: text/html; charset=utf-8\r\n"
    "Cache-Control: no-cache\r\n"
    "Content-Security-Policy: default-src 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n";

// begin_page sends what stands in front of the links.
bool begin_page(Exchange& exchange, std::span<char> line, std::string_view path) noexcept {
  if (!exchange.write("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>/")) return false;
  const bool root = path == ".";
  while (!path.empty() && !root) {
    const std::string_view piece = path.substr(0, line.size() / 6);
    path.remove_prefix(piece.size());
    if (!exchange.write({line.data(), escape(line.data(), piece)})) return false;
  }
  if (!exchange.write(root ? "</title></head><body><ul>\n" : "/</title></head><body><ul>\n")) return false;
  return root || exchange.write("<li><a href=\"../\">../</a></li>\n");
}

// add_link sends the line of one name. The "./" keeps a name with a colon from being taken for a scheme.
bool add_link(Exchange& exchange, std::span<char> line, std::string_view name, bool folder) noexcept {
  char* at = line.data();
  const auto add = [&](std::string_view piece) {
    memcpy(at, piece.data(), piece.size());
    at += piece.size();
  };
  const std::string_view end = folder ? "/" : "";
  add("<li><a href=\"./");
  const auto link = encode_percent(name, line.subspan(static_cast<std::size_t>(at - line.data())));
  if (!link) return false;
  at += link->size();
  add(end);
  add("\">");
  at = escape(at, name);
  add(end);
  add("</a></li>\n");
  return static_cast<bool>(exchange.write({line.data(), at}));
}

// collect fills the list from the directory. May block.
int collect(int folder, ListingMemory& memory, bool dot_files) noexcept {
  FolderEntries entries(folder, memory.entries);
  while (const auto entry = entries.next()) {
    if (entry->type == FolderEntries::Type::other || FileReplacement::is_temporary(entry->name)) continue;
    if (entry->name.starts_with('.') && !dot_files) continue;
    memory.names.add(entry->name, entry->type == FolderEntries::Type::folder);
  }
  memory.names.sort();
  return entries.failed();
}

// send_page returns a status where nothing has been answered yet, 0 otherwise.
int send_page(Exchange& exchange, int folder, ListingMemory& memory, std::string_view path, bool dot_files) noexcept {
  bool begun = false;
  char after[NameList::kMostName];
  std::size_t after_size = 0;
  do {
    memory.names.begin({after, after_size});
    const auto collected = blocking_borrowed([&](const BlockingStop&) { return collect(folder, memory, dot_files); });
    if (!collected || *collected != 0) {
      if (!begun) return collected ? status_of(*collected) : 503;
      static_cast<void>(exchange.write("<li>(the rest could not be read)</li>\n"));
      break;
    }
    if (!begun) {
      begun = true;
      exchange.start(200).fixed(kFields);
      if (!exchange.begin_chunked() || !begin_page(exchange, memory.line, path)) return 0;
    }
    const std::size_t count = memory.names.count();
    for (std::size_t i = 0; i < count; ++i) {
      if (!add_link(exchange, memory.line, memory.names.name(i), memory.names.folder(i))) return 0;
    }
    if (count == 0) break;
    const std::string_view last = memory.names.name(count - 1);
    memcpy(after, last.data(), last.size());
    after_size = last.size();
  } while (memory.names.truncated());
  static_cast<void>(exchange.write("</ul></body></html>\n"));
  return 0;
}

}  // namespace

void list_folder(Exchange& exchange, const OpenFile& folder, std::string_view path, bool dot_files) noexcept {
  const OpenFile readable(with_room(exchange, [&] {
    const int fd = ::openat(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
  }));
  if (readable.fd() < 0) {
    const int status = status_of(readable.fd());
    return exchange.respond_status(status, status == 503 ? "Retry-After: 1\r\n" : "");
  }
  ListingMemory* const memory = ListingMemory::take();
  if (memory == nullptr) return exchange.respond_status(503, "Retry-After: 1\r\n");
  const int status = send_page(exchange, readable.fd(), *memory, path, dot_files);
  ListingMemory::give(memory);
  if (status != 0) exchange.respond_status(status);
}

}  // namespace coir::http
