// Forms with files as a handler reads them, and stores them.

#include <CppUTest/TestHarness.h>
#include <coir/file.h>
#include <coir/http/content.h>
#include <coir/http/server.h>
#include <sys/stat.h>

#include <cstring>
#include <string_view>

#include "tests/support/ask.h"
#include "tests/support/folder.h"

namespace http_multipart_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::ErrorCode;
using coir::test::ask;
using coir::test::Asker;
using coir::test::content_of;
using coir::test::Folder;
using coir::test::holds;
using coir::test::put;
using coir::test::SmallDisk;
using coir::test::status_of;
using coir::test::with_server;

// Site is what the handlers store into.
struct Site {
  Folder folder;
  char path[200];
  std::uint64_t stored = 0;
  long resident_kb = 0;

  Site() { strcpy(path, folder.at("image")); }
};

long resident_kb() {
  char text[64] = {};
  auto file = coir::File::open("/proc/self/statm");
  if (!file || !file->read_all(text)) return -1;
  return strtol(strchr(text, ' '), nullptr, 10) * 4;
}

// store saves what is called "image" and drops the rest.
void store(Site& site, Exchange& exchange) {
  Multipart form(exchange, exchange.scratch());
  for (;;) {
    const auto part = form.next();
    if (!part && part.error() == ErrorCode::end_of_stream) break;
    if (!part) return;
    if (part->name != "image") continue;
    const auto saved = form.save(site.path);
    if (!saved) return;
    site.stored = *saved;
    site.resident_kb = resident_kb();
  }
  exchange.respond(200, "text/plain", "stored");
}

// show answers with the fields, read in one of two ways.
void show(Exchange& exchange) {
  char text[400];
  std::size_t size = 0;
  const auto add = [&](std::string_view piece) {
    memcpy(text + size, piece.data(), piece.size());
    size += piece.size();
  };
  Multipart form(exchange, exchange.scratch());
  for (;;) {
    const auto part = form.next();
    if (!part && part.error() == ErrorCode::end_of_stream) break;
    if (!part) return;
    if (part->name == "skip") continue;
    add(part->name);
    add("=");
    char value[20];
    if (part->name == "all") {
      const auto all = form.read_all(value);
      if (!all) return;
      add(*all);
    } else {
      while (const auto got = form.read({value, 3})) add({value, *got});
    }
    add(";");
  }
  exchange.respond(200, "text/plain", {text, size});
}

constexpr std::string_view kImage =
    "--XX\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.bin\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\n";

}  // namespace

TEST_GROUP(HttpMultipart) {
  Site site;
  char request[4096];

  // post sends a form with its length, or as one chunk.
  std::string_view post(const Handler& handler, std::string_view form,
                        std::string_view type = "multipart/form-data; boundary=XX") {
    char length[24];
    std::size_t size = 0;
    for (const auto piece :
         {"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "sv, type, "\r\nContent-Length: "sv,
          std::string_view(length, static_cast<std::size_t>(write_decimal(length, form.size()) - length)), "\r\n\r\n"sv,
          form}) {
      memcpy(request + size, piece.data(), piece.size());
      size += piece.size();
    }
    return ask({.handler = handler}, {request, size});
  }

  // upload says a head, `kilobytes` of an image and an end to a server with `store`, and returns the answer.
  std::string_view upload(std::size_t kilobytes, std::string_view end, std::size_t claimed) {
    static char said[1000];
    static std::string_view heard;
    heard = {};
    ServerOptions options = {.handler = [this](Exchange& exchange) { store(site, exchange); }};
    options.limits.max_body = 64 << 20;
    with_server(options, [&](Asker& asker) {
      char head[300] =
          "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; "
          "boundary=XX\r\n"
          "Content-Length: ";
      char* at = write_decimal(head + strlen(head), claimed);
      memcpy(at, "\r\n\r\n", 4);
      asker.expectations.expect(asker.say({head, at + 4}));
      asker.expectations.expect(asker.say(kImage));
      static char piece[1024];
      for (std::size_t i = 0; i < kilobytes; ++i) {
        if (!asker.say({piece, sizeof piece})) break;
      }
      static_cast<void>(asker.say(end));
      asker.stream.shutdown_write();
      heard = asker.hear(said);
    });
    return heard;
  }
};

TEST(HttpMultipart, fields_are_read_whole_in_pieces_or_not_at_all) {
  const auto answer = post(show,
                           "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1234567\r\n"
                           "--XX\r\nContent-Disposition: form-data; name=skip\r\n\r\n1234567\r\n"
                           "--XX\r\nContent-Disposition: form-data; name=all\r\n\r\nwhole\r\n"
                           "--XX\r\nContent-Disposition: form-data; name=none\r\n\r\n\r\n"
                           "--XX--\r\n");
  CHECK(content_of(answer) == "a=1234567;all=whole;none=;");
}

TEST(HttpMultipart, each_fault_is_answered) {
  CHECK_EQUAL(400, status_of(post(show, "--XX\r\n")));
  CHECK_EQUAL(400, status_of(post(show, "")));
  CHECK_EQUAL(400, status_of(post(show, "--XX--", "multipart/form-data")));
  const auto answer = post(show, "a=b", "application/x-www-form-urlencoded");
  CHECK_EQUAL(415, status_of(answer));
  CHECK(answer.find("\r\nAccept: multipart/form-data\r\n") != answer.npos);
  CHECK_EQUAL(413, status_of(post(show,
                                  "--XX\r\nContent-Disposition: form-data; name=all\r\n\r\n"
                                  "more than twenty bytes\r\n--XX--\r\n")));
}

TEST(HttpMultipart, too_little_memory_is_limit) {
  static coir::Error error;
  post(
      [](Exchange& exchange) {
        const auto memory = exchange.scratch().first(Multipart::kLeastMemory);
        const auto small = Multipart(exchange, memory.subspan(1)).next();
        const auto large_header = Multipart(exchange, memory, {.max_header_bytes = 1025}).next();
        error = small.error() == large_header.error() ? small.error() : coir::Error{ErrorCode::stale};
      },
      "--XX--");
  CHECK(error == ErrorCode::limit);
}

TEST(HttpMultipart, a_part_is_stored_in_a_file) {
  put(site.folder.at("image"), "old", 0600);
  char form[300];
  std::size_t size = 0;
  for (const auto piece : {kImage, "new\r\n--content"sv, "\r\n--XX--\r\n"sv}) {
    memcpy(form + size, piece.data(), piece.size());
    size += piece.size();
  }
  CHECK(content_of(post([this](Exchange& exchange) { store(site, exchange); }, {form, size})) == "stored");
  CHECK(holds(site.folder.at("image"), "new\r\n--content"));
  CHECK_EQUAL(1, site.folder.count());
}

TEST(HttpMultipart, an_image_of_20_mb_is_stored_in_little_memory) {
  constexpr std::size_t kilobytes = 20 * 1024;
  constexpr std::string_view end = "\r\n--XX--\r\n";
  const auto answer = upload(kilobytes, end, kImage.size() + kilobytes * 1024 + end.size());
  CHECK(content_of(answer) == "stored");
  CHECK(site.stored == kilobytes * 1024);
  struct stat status;
  CHECK_EQUAL(0, stat(site.folder.at("image"), &status));
  CHECK(static_cast<std::size_t>(status.st_size) == kilobytes * 1024);
  CHECK_EQUAL(1, site.folder.count());
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer)
  // Elsewhere it is the emulator's or the sanitizer's.
  CHECK(site.resident_kb > 0);
  CHECK(site.resident_kb < 4096);
#endif
}

TEST(HttpMultipart, an_upload_that_ends_early_leaves_the_old_file_and_nothing_else) {
  put(site.folder.at("image"), "old");
  // The client goes away in the middle.
  CHECK_EQUAL(400, status_of(upload(100, "", 1 << 20)));
  CHECK(holds(site.folder.at("image"), "old"));
  CHECK_EQUAL(1, site.folder.count());
  // The form lacks its last boundary.
  CHECK_EQUAL(400, status_of(upload(100, "\r\n--XX", kImage.size() + 100 * 1024 + 6)));
  CHECK(holds(site.folder.at("image"), "old"));
  CHECK_EQUAL(1, site.folder.count());
}

TEST(HttpMultipart, a_full_disk_is_507_and_leaves_nothing) {
  put(site.folder.at("image"), "old");
  SmallDisk disk(40'000);
  CHECK_EQUAL(507, status_of(upload(100, "\r\n--XX--", kImage.size() + 100 * 1024 + 8)));
  CHECK(holds(site.folder.at("image"), "old"));
  CHECK_EQUAL(1, site.folder.count());
}

TEST(HttpMultipart, a_file_that_cannot_be_made_is_500) {
  CHECK_EQUAL(0, mkdir(site.folder.at("image"), 0700));
  CHECK_EQUAL(500, status_of(upload(1, "\r\n--XX--", kImage.size() + 1024 + 8)));
  CHECK_EQUAL(0, rmdir(site.folder.at("image")));
}

}  // namespace http_multipart_test
