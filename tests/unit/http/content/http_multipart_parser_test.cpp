// A form taken apart: the outcome is the same however its bytes are cut.

#include <CppUTest/TestHarness.h>
#include <coir/http/detail/multipart_parser.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace http_multipart_parser_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using Parser = detail::MultipartParser;

// Taken is what a parser made of a form: "[name|file|type]content." for each part, and then "end" or a status.
struct Taken {
  char text[4000];
  std::size_t size = 0;

  void add(std::string_view piece) {
    if (piece.empty()) return;
    memcpy(text + size, piece.data(), piece.size());
    size += piece.size();
  }
  std::string_view view() const { return {text, size}; }
};

Taken take(std::string_view form, std::string_view type, std::size_t cut, const MultipartLimits& limits = {}) {
  Taken taken;
  char memory[2048];
  Parser parser(memory, limits);
  if (const unsigned status = parser.begin(type)) {
    taken.add(status == 415 ? "415" : "400");
    return taken;
  }
  for (;;) {
    switch (parser.next()) {
      case Parser::Event::more: {
        const std::span<char> room = parser.room();
        CHECK_FALSE(room.empty());
        const std::size_t size = std::min({room.size(), form.size(), cut});
        memcpy(room.data(), form.data(), size);
        form.remove_prefix(size);
        if (size == 0) {
          parser.ended();
        } else {
          parser.filled(size);
        }
        break;
      }
      case Parser::Event::part:
        for (const auto piece : {"["sv, parser.part().name, "|"sv,
                                 parser.part().file_name.data() != nullptr ? parser.part().file_name : "-"sv, "|"sv,
                                 parser.part().content_type, "]"sv}) {
          taken.add(piece);
        }
        break;
      case Parser::Event::content:
        CHECK_FALSE(parser.content().empty());
        taken.add(parser.content());
        break;
      case Parser::Event::part_end:
        taken.add(".");
        break;
      case Parser::Event::end:
        taken.add("end");
        return taken;
      case Parser::Event::bad:
        taken.add(parser.status() == 413 ? "413" : "400");
        CHECK(parser.next() == Parser::Event::bad);
        return taken;
    }
  }
}

constexpr std::string_view kType = "multipart/form-data; boundary=XX";

// gives tells whether a form is taken for `wanted`, in all pieces; a form that is bad, whatever was taken before.
bool gives(std::string_view form, std::string_view wanted, const MultipartLimits& limits = {}) {
  for (std::size_t cut = 1; cut <= form.size() + 1; ++cut) {
    const Taken taken = take(form, kType, cut, limits);
    const bool same = wanted.size() == 3 && wanted != "end" ? taken.view().ends_with(wanted) : taken.view() == wanted;
    if (!same) {
      UT_PRINT(
          StringFromFormat("in pieces of %d: %.*s", static_cast<int>(cut), static_cast<int>(taken.size), taken.text)
              .asCharString());
      return false;
    }
  }
  return true;
}

// A part of a form, its header's lines without the CRLF behind the last.
#define PART(header, content) "--XX\r\n" header "\r\n\r\n" content "\r\n"
#define DISPOSITION "Content-Disposition: form-data; "

bool header_gives(std::string_view header, std::string_view wanted) {
  char form[1000];
  std::size_t size = 0;
  for (const auto piece : {"--XX\r\n"sv, header, "\r\n\r\nc\r\n--XX--\r\n"sv}) {
    memcpy(form + size, piece.data(), piece.size());
    size += piece.size();
  }
  return gives({form, size}, wanted);
}

unsigned begun(std::string_view type) {
  char memory[2048];
  return Parser(memory, {}).begin(type);
}

}  // namespace

TEST_GROUP(HttpMultipartParser) {};

TEST(HttpMultipartParser, parts_are_taken_apart) {
  CHECK(gives(
      PART(DISPOSITION "name=\"a\"", "1") PART(
          "content-type:  text/x\r\ncontent-disposition: Form-Data;name=b ; filename=\"f.txt\"", "line\r\nline")
          PART(DISPOSITION "name=\"c\"; filename=\"\"\r\nContent-Transfer-Encoding: binary\r\nX: y", "") "--XX--\r\n",
      "[a|-|]1.[b|f.txt|text/x]line\r\nline.[c||].end"));
  CHECK(gives(PART(DISPOSITION "name=a", "1") "--XX--", "[a|-|]1.end"));
  CHECK(gives("--XX--\r\n", "end"));
}

TEST(HttpMultipartParser, bytes_like_the_boundary_are_content_until_they_are_one) {
  CHECK(gives(PART(DISPOSITION "name=a", "\r\n--X\r\n-\r\n--\r\r\n\r\n\n--XX\r--XX--\r\n-") "--XX--",
              "[a|-|]\r\n--X\r\n-\r\n--\r\r\n\r\n\n--XX\r--XX--\r\n-.end"));
  CHECK(gives(PART(DISPOSITION "name=a", "\r\n\r") "--XX--", "[a|-|]\r\n\r.end"));
}

TEST(HttpMultipartParser, bytes_after_the_last_boundary_are_dropped) {
  CHECK(gives(PART(DISPOSITION "name=a", "1") "--XX--\r\n--XX\r\nanything", "[a|-|]1.end"));
  CHECK(gives("--XX--x", "400"));
  CHECK(gives("--XX--\n", "400"));
  CHECK(gives("--XX--\rx", "400"));
  CHECK(gives("--XX--\r", "400"));
}

TEST(HttpMultipartParser, without_its_last_boundary_a_form_is_400) {
  constexpr std::string_view form = PART(DISPOSITION "name=a", "1") PART(DISPOSITION "name=b", "2") "--XX--";
  for (std::size_t size = 0; size < form.size(); ++size) {
    CHECK(take({form.data(), size}, kType, 1000).view().ends_with("400"));
    CHECK(take({form.data(), size}, kType, 1).view().ends_with("400"));
  }
  // A part is whole only when the line of the boundary behind it is.
  CHECK(take(PART(DISPOSITION "name=a", "1") "--XX-", kType, 1).view() == "[a|-|]1400");
}

TEST(HttpMultipartParser, a_line_that_goes_on_behind_the_boundary_is_400) {
  CHECK(gives(PART(DISPOSITION "name=a", "1\r\n--XXX") "--XX--", "400"));
  CHECK(gives(PART(DISPOSITION "name=a", "1\r\n--XX \r\n") "--XX--", "400"));
  CHECK(gives(PART(DISPOSITION "name=a", "1\r\n--XX\nx") "--XX--", "400"));
  CHECK(gives(PART(DISPOSITION "name=a", "1\r\n--XX-x") "--XX--", "400"));
}

TEST(HttpMultipartParser, bytes_before_the_first_boundary_are_dropped) {
  for (const std::string_view preamble : {""sv, "\r\n"sv, "\r\n\r\n"sv, "preamble\r\n"sv, "a\r\n--X\r\n--YX\r\n"sv,
                                          "\r\r\n"sv, "\n\r\n"sv, " --XX--\r\n"sv}) {
    char form[300];
    std::size_t size = preamble.copy(form, preamble.size());
    size += (PART(DISPOSITION "name=a", "1") "--XX--"sv).copy(form + size, sizeof form - size);
    CHECK(gives({form, size}, "[a|-|]1.end"));
  }
  CHECK(gives("preamble\r\n--XX--", "end"));
  CHECK(gives("preamble--XX--", "400"));
  CHECK(gives("preamble\r\n--XXx", "400"));
  CHECK(gives("preamble\n--XX--", "400"));
  CHECK(gives("-XX--", "400"));
  CHECK(gives("--YY--", "400"));
  // It may be longer than the parser's memory.
  static char longer[5000];
  memset(longer, '\r', 4900);
  memcpy(longer + 4900, "\r\n--XX--", 8);
  CHECK(take({longer, 4908}, kType, 1000).view() == "end");
}

TEST(HttpMultipartParser, a_header_is_well_formed_and_names_its_part) {
  CHECK(header_gives(DISPOSITION "name=a", "[a|-|]c.end"));
  CHECK(header_gives(DISPOSITION "name=\"\"", "[|-|]c.end"));
  CHECK(header_gives(DISPOSITION "size=3; name=a;", "[a|-|]c.end"));
  for (const auto header : {""sv,
                            "X: y"sv,
                            "Content-Disposition: form-data"sv,
                            DISPOSITION "filename=a"sv,
                            "Content-Disposition: file; name=a"sv,
                            DISPOSITION "name"sv,
                            DISPOSITION "name="sv,
                            DISPOSITION "name=a b"sv,
                            DISPOSITION "name=\"a"sv,
                            DISPOSITION "name=\"a\\\""sv,
                            DISPOSITION "name=\"a\"b"sv,
                            DISPOSITION "name = a"sv,
                            DISPOSITION "name=a; name=b"sv,
                            DISPOSITION "name=a; filename=b; FileName=c"sv,
                            DISPOSITION "name=a\r\n" DISPOSITION "filename=b"sv,
                            DISPOSITION "name=a\r\nX"sv,
                            DISPOSITION "name=a\r\n folded"sv,
                            DISPOSITION "name=a\r\nX : y"sv,
                            DISPOSITION "name=a\r\nContent-Type: a\r\nContent-Type: a"sv,
                            DISPOSITION "name=\"a\nb\""sv,
                            DISPOSITION "name=\"a\rb\""sv,
                            DISPOSITION "name=\"a\0b\""sv,
                            DISPOSITION "name=\"a\x7f\""sv,
                            "Content-Disposition: form-data name=a"sv,
                            DISPOSITION "name=a\r\nContent-Transfer-Encoding: base64"sv}) {
    CHECK(header_gives(header, "400"));
  }
}

TEST(HttpMultipartParser, quotes_in_names_come_by_a_backslash_or_as_browsers_send_them) {
  CHECK(header_gives(DISPOSITION "name=\"a\\\"b\"; filename=\"\\\"c;d\\\"\"", "[a\"b|\"c;d\"|]c.end"));
  CHECK(header_gives(DISPOSITION "name=\"a%22b\"; filename=\"\xc3\xa4.txt\"", "[a%22b|\xc3\xa4.txt|]c.end"));
  CHECK(header_gives(DISPOSITION "name=\"a\\b\"", "[a\\b|-|]c.end"));
}

TEST(HttpMultipartParser, a_files_name_that_could_lead_elsewhere_is_400) {
  for (const auto name :
       {"../a"sv, "a/b"sv, "/a"sv, "a/"sv, "C:\\a"sv, "..\\\\a"sv, "."sv, ".."sv, "a\0.txt"sv, "a\tb"sv}) {
    char header[100] = DISPOSITION "name=a; filename=\"";
    std::size_t size = strlen(header);
    memcpy(header + size, name.data(), name.size());
    size += name.size();
    header[size++] = '"';
    CHECK(header_gives({header, size}, "400"));
  }
  CHECK(header_gives(DISPOSITION "name=a; filename=\"...\"", "[a|...|]c.end"));
  CHECK(header_gives(DISPOSITION "name=a; filename*=UTF-8''b", "400"));
  CHECK(header_gives(DISPOSITION "name=a; filename=b; filename*=UTF-8''c", "400"));
}

TEST(HttpMultipartParser, ceilings_are_413) {
  constexpr std::string_view form =
      PART(DISPOSITION "name=abcd; filename=efgh", "12345") PART(DISPOSITION "name=b", "2") "--XX--";
  CHECK(gives(form, "[abcd|efgh|]12345.[b|-|]2.end",
              {.max_parts = 2, .max_header_bytes = 60, .max_name = 4, .max_part_bytes = 5}));
  CHECK(gives(form, "413", {.max_parts = 1}));
  CHECK(gives(form, "413", {.max_header_bytes = 59}));
  CHECK(gives(form, "413", {.max_name = 3}));
  CHECK(gives(form, "413", {.max_part_bytes = 4}));
}

TEST(HttpMultipartParser, a_boundary_has_70_characters_at_most) {
  constexpr std::string_view type =
      "multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901234567890";
  CHECK(take("--1234567890123456789012345678901234567890123456789012345678901234567890--", type, 1).view() == "end");
  char longer[200];
  memcpy(longer, type.data(), type.size());
  longer[type.size()] = '1';
  CHECK_EQUAL(400u, begun({longer, type.size() + 1}));
}

TEST(HttpMultipartParser, a_boundary_is_named_once_in_the_media_type) {
  CHECK(take("--a b--", "Multipart/Form-Data ;charset=x; Boundary=\"a b\"", 1).view() == "end");
  CHECK(take("--a'()+_,-./:=?--", "multipart/form-data; boundary=\"a'()+_,-./:=?\"", 1).view() == "end");
  for (const auto type :
       {"multipart/form-data"sv, "multipart/form-data; boundary"sv, "multipart/form-data; boundary="sv,
        "multipart/form-data; boundary=\"\""sv, "multipart/form-data; boundary=a; boundary=a"sv,
        "multipart/form-data; boundary=\"a \""sv, "multipart/form-data; boundary=\"a"sv,
        "multipart/form-data; boundary=a;b"sv, "multipart/form-data; boundary=a{b"sv,
        "multipart/form-data; boundary=\"a\\\"b\""sv, "multipart/form-data; boundary=a!"sv}) {
    CHECK_EQUAL(400u, begun(type));
  }
  for (const auto type : {""sv, "multipart/mixed; boundary=a"sv, "application/x-www-form-urlencoded"sv}) {
    CHECK_EQUAL(415u, begun(type));
  }
}

}  // namespace http_multipart_parser_test
