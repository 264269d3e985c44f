#include <CppUTest/TestHarness.h>
#include <coir/http/wire/path.h>

#include <string_view>

namespace http_mime_test {

using coir::http::media_type;

TEST_GROUP(HttpMime) {};

TEST(HttpMime, the_extension_decides) {
  CHECK(media_type("index.html") == "text/html; charset=utf-8");
  CHECK(media_type("a/b.c/style.css") == "text/css; charset=utf-8");
  CHECK(media_type("x.min.js") == "text/javascript; charset=utf-8");
  CHECK(media_type("7z.7z") == "application/x-7z-compressed");
  CHECK(media_type("font.woff2") == "font/woff2");
  CHECK(media_type("log.zst") == "application/zstd");
}

TEST(HttpMime, case_does_not_matter) {
  CHECK(media_type("PHOTO.JPG") == "image/jpeg");
}

TEST(HttpMime, an_unknown_ending_is_bytes) {
  for (const char* name :
       {"", ".", "a", "a.", "a.b", "html", "a.htmlx", "a.ht", "a.verylongextension", "a.html/b", "a.h\xd4ml"}) {
    CHECK_TEXT(media_type(name) == "application/octet-stream", name);
  }
}

}  // namespace http_mime_test
