// Which bytes are UTF-8: every character there is, every pair of bytes, table 3-7 of Unicode at its edges; and that the
// answer does not depend on how the bytes are cut.

#include <CppUTest/TestHarness.h>
#include <coir/utf8.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace utf8_test {

namespace {

using coir::is_utf8;
using coir::Utf8Checker;
using namespace std::string_view_literals;

// encode writes the bits of `value` in the form of `bytes` bytes, whether or not that form may be used.
std::string_view encode(std::uint32_t value, std::size_t bytes, char (&out)[4]) {
  if (bytes == 1) {
    out[0] = static_cast<char>(value);
    return {out, 1};
  }
  for (std::size_t at = bytes - 1; at > 0; --at, value >>= 6) out[at] = static_cast<char>(0x80 | (value & 0x3f));
  out[0] = static_cast<char>((0xf00 >> bytes & 0xff) | value);
  return {out, bytes};
}

std::size_t size_of(std::uint32_t value) {
  return value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
}

// Each text ends a block of its own, so that a sanitizer sees what is read behind it.
bool checks(std::string_view text) {
  char* const exact = static_cast<char*>(malloc(text.size() + 1));
  memcpy(exact + 1, text.data(), text.size());
  const bool good = is_utf8({exact + 1, text.size()});
  free(exact);
  return good;
}

constexpr std::string_view kGood[] = {
    ""sv,
    "\0"sv,
    "plain text, longer than a word of eight bytes"sv,
    "\x7f"sv,
    "\xc2\x80"sv,
    "\xdf\xbf"sv,
    "\xe0\xa0\x80"sv,
    "\xed\x9f\xbf"sv,
    "\xee\x80\x80"sv,
    "\xef\xbf\xbf"sv,
    "\xef\xbb\xbfwith a mark"sv,
    "\xf0\x90\x80\x80"sv,
    "\xf4\x8f\xbf\xbf"sv,
    "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"sv,
    "eight888\xe2\x82\xac"
    "eight888\xf0\x9f\xa5\xa5"
    "more than eight"sv,
};

struct Bad {
  std::string_view text;
  std::size_t place;    // of the first byte that cannot stand there
  std::size_t pending;  // bytes of a character before it
};
constexpr Bad kBad[] = {
    {"\x80"sv, 0, 0},
    {"\xbf"sv, 0, 0},
    {"\xc0\x80"sv, 0, 0},
    {"\xc1\xbf"sv, 0, 0},
    {"\xf5\x80\x80\x80"sv, 0, 0},
    {"\xfe"sv, 0, 0},
    {"\xff"sv, 0, 0},
    {"a\xc3(", 2, 1},
    {"\xe0\x9f\xbf"sv, 1, 1},
    {"\xed\xa0\x80"sv, 1, 1},
    {"\xed\xbf\xbf"sv, 1, 1},
    {"\xf0\x8f\xbf\xbf"sv, 1, 1},
    {"\xf4\x90\x80\x80"sv, 1, 1},
    {"\xe2\x82("sv, 2, 2},
    {"\xe2\x82\xc3\xa4"sv, 2, 2},
    {"\xf0\x9f\xa5z"sv, 3, 3},
    {"\xc3\xa4\xa4"sv, 2, 0},
    {"1234567\xff", 7, 0},
    {"12345678\xff", 8, 0},
    {"123456789\xff", 9, 0},
    {"1234567890123456\xc3\xc3", 17, 1},
};

}  // namespace

TEST_GROUP(Utf8) {};

TEST(Utf8, every_character_is_accepted_in_its_own_form_and_in_no_longer_one) {
  char out[4];
  for (std::uint32_t value = 0; value <= 0x10ffff; ++value) {
    const bool surrogate = value >= 0xd800 && value <= 0xdfff;
    const std::size_t size = size_of(value);
    if (is_utf8(encode(value, size, out)) == surrogate) CHECK_COMPARE_TEXT(value, ==, 0, "its own form");
    for (std::size_t longer = size + 1; longer <= 4; ++longer) {
      if (is_utf8(encode(value, longer, out))) CHECK_COMPARE_TEXT(value, ==, 0, "a longer form");
    }
  }
  for (std::uint32_t value = 0x110000; value <= 0x1fffff; ++value) {
    if (is_utf8(encode(value, 4, out))) CHECK_COMPARE_TEXT(value, ==, 0, "above U+10FFFF");
  }
}

TEST(Utf8, two_bytes_are_text_if_both_are_ascii_or_both_are_one_character) {
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const char pair[] = {static_cast<char>(a), static_cast<char>(b)};
      const bool wanted = (a < 0x80 && b < 0x80) || (a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf);
      if (is_utf8({pair, 2}) != wanted) CHECK_COMPARE_TEXT(a, ==, b, "this pair");
    }
  }
}

TEST(Utf8, good_text_is_good_however_it_is_cut) {
  for (const std::string_view text : kGood) {
    CHECK_TRUE(checks(text));
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      Utf8Checker checker;
      CHECK_TRUE(checker.feed({text.data(), cut}));
      CHECK_TRUE(checker.feed({text.data() + cut, text.size() - cut}));
      CHECK_TRUE(checker.complete());
    }
  }
}

TEST(Utf8, a_character_cut_off_is_unfinished_and_not_malformed) {
  for (const std::string_view text : {"\xc3\xa4"sv, "\xe2\x82\xac"sv, "\xf0\x9f\xa5\xa5"sv}) {
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      Utf8Checker checker;
      CHECK_TRUE(checker.feed({text.data(), cut}));
      CHECK_FALSE(checker.complete());
      LONGS_EQUAL(cut, checker.pending());
      CHECK_FALSE(checks({text.data(), cut}));
    }
  }
}

TEST(Utf8, malformed_text_is_found_at_its_byte_however_it_is_cut) {
  for (const Bad& bad : kBad) {
    CHECK_FALSE(checks(bad.text));
    for (std::size_t cut = 0; cut <= bad.text.size(); ++cut) {
      Utf8Checker checker;
      std::size_t place = checker.accept({bad.text.data(), cut});
      if (place == cut) place += checker.accept({bad.text.data() + cut, bad.text.size() - cut});
      LONGS_EQUAL(bad.place, place);
      LONGS_EQUAL(bad.pending, checker.pending());
    }
  }
}

TEST(Utf8, a_byte_that_is_no_text_is_found_at_each_place_of_a_word) {
  for (std::size_t place = 0; place < 40; ++place) {
    char text[40];
    memset(text, 'x', sizeof text);
    text[place] = '\x80';
    LONGS_EQUAL(place, Utf8Checker().accept({text, sizeof text}));
  }
}

TEST(Utf8, a_checker_begins_anew_after_reset) {
  Utf8Checker checker;
  CHECK_FALSE(checker.feed("\xe2\x82("));
  checker.reset();
  CHECK_TRUE(checker.feed("(") && checker.complete());
}

TEST(Utf8, a_checker_is_four_bytes) {
  LONGS_EQUAL(4, sizeof(Utf8Checker));
}

}  // namespace utf8_test
