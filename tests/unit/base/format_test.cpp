// Text from parts, compared with what the C library's printf writes.
#include <coir/format.h>

#include <CppUTest/TestHarness.h>
#include <coir/stack_size.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <limits>

#include "tests/support/random.h"
#include "tests/support/stack_depth.h"

namespace format_test {

using coir::byte_size;
using coir::cut;
using coir::fixed;
using coir::format;
using coir::format_length;
using coir::Formatter;
using coir::hex;
using coir::json_quoted;
using coir::left;
using coir::right;
using coir::zeros;
using namespace std::chrono_literals;

namespace {

// Numbers at the edges of every type, and at random of every length.
constexpr std::uint64_t kEdges[] = {0,
                                    1,
                                    9,
                                    10,
                                    99,
                                    100,
                                    127,
                                    128,
                                    255,
                                    256,
                                    999'999'999,
                                    1'000'000'000,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x10000,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    0x7fffffffffffffff,
                                    0x8000000000000000,
                                    0xffffffffffffffff};

// any_number has up to `bits` bits, each length as often as the others.
std::uint64_t any_number(coir::test::Random& random, std::uint32_t bits) {
  const std::uint64_t high = random.below(UINT32_MAX);
  return (high << 32 | random.below(UINT32_MAX)) >> (64 - bits + random.below(bits));
}

template <class Visit>
void for_numbers(int random_ones, Visit visit) {
  for (const std::uint64_t edge : kEdges) {
    visit(edge);
    visit(0 - edge);
  }
  coir::test::Random random{42};
  for (int i = 0; i < random_ones; ++i) visit(any_number(random, 64));
}

// is tells whether printf writes the same text.
[[gnu::format(printf, 2, 3)]] bool is(std::string_view text, const char* how, ...) {
  char wanted[256];
  va_list arguments;
  va_start(arguments, how);
  const int size = vsnprintf(wanted, sizeof wanted, how, arguments);
  va_end(arguments);
  if (text == std::string_view(wanted, static_cast<std::size_t>(size))) return true;
  fprintf(stderr, "got \"%.*s\", not \"%s\"\n", static_cast<int>(text.size()), text.data(), wanted);
  return false;
}

char g_room[256];

}  // namespace

TEST_GROUP(Format) {};

TEST(Format, whole_numbers_of_every_type_are_those_of_printf) {
  for_numbers(1500, [](std::uint64_t bits) {
    CHECK(is(format(g_room, static_cast<signed char>(bits)), "%hhd", static_cast<signed char>(bits)));
    CHECK(is(format(g_room, static_cast<unsigned char>(bits)), "%hhu", static_cast<unsigned char>(bits)));
    CHECK(is(format(g_room, static_cast<short>(bits)), "%hd", static_cast<short>(bits)));
    CHECK(is(format(g_room, static_cast<int>(bits)), "%d", static_cast<int>(bits)));
    CHECK(is(format(g_room, static_cast<unsigned>(bits)), "%u", static_cast<unsigned>(bits)));
    CHECK(is(format(g_room, static_cast<long>(bits)), "%ld", static_cast<long>(bits)));
    CHECK(is(format(g_room, static_cast<long long>(bits)), "%lld", static_cast<long long>(bits)));
    CHECK(is(format(g_room, static_cast<unsigned long long>(bits)), "%llu", static_cast<unsigned long long>(bits)));
  });
}

TEST(Format, hexadecimal_padded_and_filled_numbers_are_those_of_printf) {
  for_numbers(150, [](std::uint64_t bits) {
    const auto number = static_cast<long long>(bits);
    const auto small = static_cast<int>(bits);
    CHECK(is(format(g_room, hex(number)), "%llx", static_cast<unsigned long long>(bits)));
    CHECK(is(format(g_room, hex(small)), "%x", static_cast<unsigned>(small)));
    CHECK(is(format(g_room, hex(static_cast<signed char>(bits))), "%hhx", static_cast<unsigned char>(bits)));
    for (int width = 0; width < 24; ++width) {
      const auto least = static_cast<std::size_t>(width);
      CHECK(is(format(g_room, hex(bits, least)), "%0*llx", width, static_cast<unsigned long long>(bits)));
      CHECK(is(format(g_room, zeros(number, least)), "%0*lld", width, number));
      CHECK(is(format(g_room, zeros(bits, least)), "%0*llu", width, static_cast<unsigned long long>(bits)));
      CHECK(is(format(g_room, right(number, least)), "%*lld", width, number));
      CHECK(is(format(g_room, left(number, least), "|"), "%-*lld|", width, number));
      CHECK(is(format(g_room, right(hex(small), least)), "%*x", width, static_cast<unsigned>(small)));
    }
  });
}

TEST(Format, fixed_point_is_the_number_with_a_point) {
  // A double holds these exactly enough for printf to write the same digits.
  coir::test::Random random{7};
  constexpr double kScales[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = static_cast<std::int64_t>(any_number(random, 50)) * (i % 2 == 0 ? 1 : -1);
    for (int digits = 0; digits < 7; ++digits) {
      if (value == 0) continue;
      CHECK(is(format(g_room, fixed(value, static_cast<std::size_t>(digits))), "%.*f", digits,
               static_cast<double>(value) / kScales[digits]));
    }
  }
  CHECK(is(format(g_room, fixed(0, 2)), "0.00"));
  CHECK(is(format(g_room, fixed(-5, 2)), "-0.05"));
  CHECK(is(format(g_room, fixed(-2153, 2)), "-21.53"));
  CHECK(is(format(g_room, fixed(INT64_MIN, 19)), "-0.9223372036854775808"));
  CHECK(is(format(g_room, fixed(UINT64_MAX, 19)), "1.8446744073709551615"));
  CHECK(is(format(g_room, fixed(7, 25)), "0.0000000000000000000000007"));
  CHECK(is(format(g_room, right(fixed(1234, 2), 8)), "   12.34"));
}

TEST(Format, texts_are_padded_and_cut_as_by_printf) {
  constexpr const char* kTexts[] = {"", "a", "ab", "sensor", "a text that is longer than the others"};
  for (const char* text : kTexts) {
    for (int width = 0; width < 45; ++width) {
      const auto least = static_cast<std::size_t>(width);
      CHECK(is(format(g_room, left(text, least), "|"), "%-*s|", width, text));
      CHECK(is(format(g_room, right(text, least), "|"), "%*s|", width, text));
      const int kept = width - 3;
      if (strlen(text) <= least) {
        CHECK(is(format(g_room, cut(text, least)), "%s", text));
      } else if (kept >= 0) {
        CHECK(is(format(g_room, cut(text, least)), "%.*s...", kept, text));
      } else {
        CHECK(is(format(g_room, cut(text, least)), "%.*s", width, "..."));
      }
    }
  }
  CHECK(is(format(g_room, right(cut("a long name", 8), 10), "|"), "  a lon...|"));
}

TEST(Format, parts_of_every_kind_stand_in_a_row) {
  const char* const none = nullptr;
  char mutable_text[] = "mutable";
  CHECK(is(format(g_room, "text ", std::string_view("view"), ' ', mutable_text, none, true, false, 3, -4L, 5u),
           "text view mutable?truefalse3-45"));
  CHECK(is(format(g_room, coir::Error{coir::ErrorCode::timed_out}, ", ", coir::ErrorCode::closed), "%s, %s",
           coir::describe({coir::ErrorCode::timed_out}), coir::describe({coir::ErrorCode::closed})));
  CHECK(is(format(g_room), "%s", ""));
}

namespace {

template <class T>
constexpr bool kIsNumber = requires { zeros(T{}, 1); };

}  // namespace

TEST(Format, a_text_that_is_no_whole_number_is_not_taken_for_one) {
  CHECK_TRUE(kIsNumber<short> && kIsNumber<unsigned char>);
  CHECK_FALSE(kIsNumber<double> || kIsNumber<char> || kIsNumber<bool>);
}

TEST(Format, durations_and_sizes_have_three_digits_and_a_unit) {
  CHECK(is(format(g_room, 0ns, " ", 999ns, " ", 1us, " ", 9'999ns, " ", 12'345ns, " ", 250us), "%s",
           "0 ns 999 ns 1.00 us 9.99 us 12.3 us 250 us"));
  CHECK(is(format(g_room, 3ms, " ", 3'210ms, " ", 61s, " ", 999'999'999ns, " ", 24h, " ", -1500us), "%s",
           "3.00 ms 3.21 s 61.0 s 999 ms 86400 s -1.50 ms"));
  CHECK(is(format(g_room, std::chrono::nanoseconds::min(), " ", std::chrono::nanoseconds::max()), "%s",
           "-9223372036 s 9223372036 s"));
  CHECK(is(format(g_room, byte_size(0), " ", byte_size(1023), " ", byte_size(1024), " ", byte_size(1536)), "%s",
           "0 B 1023 B 1.00 KB 1.50 KB"));
  CHECK(is(format(g_room, byte_size(29 << 20), " ", byte_size((1 << 20) - 1), " ", byte_size(5ull << 30)), "%s",
           "29.0 MB 1023 KB 5.00 GB"));
  CHECK(is(format(g_room, byte_size(UINT64_MAX)), "%s", "16777215 TB"));
}

TEST(Format, json_strings_are_quoted_and_escaped) {
  CHECK(is(format(g_room, json_quoted("")), "\"\""));
  CHECK(is(format(g_room, json_quoted("plain, f\xc3\xbcr \xf0\x9f\xa5\xa5")), "%s",
           "\"plain, f\xc3\xbcr \xf0\x9f\xa5\xa5\""));
  CHECK(is(format(g_room, json_quoted("\"\\/\b\f\n\r\t")), "%s", R"("\"\\/\b\f\n\r\t")"));
  for (int c = 0; c < 0x20; ++c) {
    if (strchr("\b\f\n\r\t", c) != nullptr && c != 0) continue;
    const char text[] = {'a', static_cast<char>(c), 'b'};
    CHECK(is(format(g_room, json_quoted({text, 3})), "\"a\\u%04xb\"", static_cast<unsigned>(c)));
  }
  // Bytes that are not UTF-8: alone, cut off, overlong, a surrogate.
  CHECK(is(format(g_room, json_quoted("\xff|\xc3")), "%s", R"("\ufffd|\ufffd")"));
  CHECK(is(format(g_room, json_quoted("\xc0\xaf")), "%s", R"("\ufffd\ufffd")"));
  CHECK(is(format(g_room, json_quoted("\xed\xa0\x80")), "%s", R"("\ufffd\ufffd\ufffd")"));
}

TEST(Format, controls_that_a_terminal_obeys_are_escaped_beyond_ascii_too) {
  // CSI as a character of C1: that of the Linux console, and of xterm.
  CHECK(is(format(g_room, json_quoted("a\xc2\x9b"
                                      "2J\x7f")),
           "%s", R"("a\u009b2J\u007f")"));
  CHECK(is(format(g_room, coir::escaped("a\xc2\x9b"
                                        "2J")),
           "%s", R"(a\xc2\x9b2J)"));
  CHECK(is(format(g_room, coir::escaped_lines("\xc2\x9b\n")), "%s", "\\xc2\\x9b\n"));
  // The first and the last of them, and their neighbour.
  CHECK(is(format(g_room, json_quoted("\xc2\x80\xc2\x9f\xc2\xa0")), "%s", "\"\\u0080\\u009f\xc2\xa0\""));
  CHECK(is(format(g_room, coir::escaped("\xc2\x80\xc2\x9f\xc2\xa0")), "%s", "\\xc2\\x80\\xc2\\x9f\xc2\xa0"));
  // No UTF-8: CSI as a byte, characters that are cut off, an overlong one.
  CHECK(is(format(g_room, coir::escaped("\x9b"
                                        "2J|\xc3|\xf0\x9f\xa5")),
           "%s", R"(\x9b2J|\xc3|\xf0\x9f\xa5)"));
  CHECK(is(format(g_room, coir::escaped("\xc0\x9b\xf0\x9f\xa5\xa5")), "%s", "\\xc0\\x9b\xf0\x9f\xa5\xa5"));
}

TEST(Format, control_bytes_are_escaped_and_the_ends_of_lines_where_they_are_not_wanted) {
  CHECK(is(format(g_room, coir::escaped("")), "%s", ""));
  CHECK(is(format(g_room, coir::escaped("a\x1b[2J\nf\xc3\xbcr\x7f")), "%s", "a\\x1b[2J\\x0af\xc3\xbcr\\x7f"));
  CHECK(is(format(g_room, coir::escaped_lines("\ta\n\x01\n")), "%s", "\\x09a\n\\x01\n"));
}

TEST(Format, a_text_that_does_not_fit_ends_in_dots_and_tells_its_length) {
  char whole[80];
  const auto size = static_cast<std::size_t>(snprintf(whole, sizeof whole, "sensor %d: %s %x", 17, "roof", 0xabcu));
  for (std::size_t room = 0; room < sizeof whole; ++room) {
    char memory[sizeof whole + 1];
    memset(memory, '#', sizeof memory);
    Formatter out({memory, room});
    out.add("sensor ", 17, ": ", "roof", " ", hex(0xabc));
    LONGS_EQUAL(size, out.needed());
    CHECK_EQUAL(room >= size, out.fits());
    if (room >= size) {
      CHECK(is(out.text(), "%s", whole));
    } else if (room > 3) {
      CHECK(is(out.text(), "%.*s...", static_cast<int>(room - 4), whole));
    } else {
      CHECK(is(out.text(), "%.*s", static_cast<int>(room), "..."));
    }
    for (std::size_t i = room; i < sizeof memory; ++i) BYTES_EQUAL('#', memory[i]);
  }
  LONGS_EQUAL(size, format_length("sensor ", 17, ": ", "roof", " ", hex(0xabc)));
}

TEST(Format, a_line_that_is_cut_is_a_line_still) {
  char room[12];
  CHECK(is(format(room, "0123456789", "\n"), "0123456789\n"));
  CHECK(is(format(room, "0123456789a", "\n"), "0123456789a\n"));
  CHECK(is(format(room, "0123456789ab", "\n"), "01234567...\n"));
  CHECK(is(format(room, "0123456789ab", "cd", "\n"), "01234567...\n"));
  CHECK(is(format(std::span(room).first(3), "0123\n"), "..."));
  Formatter out(room);
  out.add("a line that is cut\n");
  CHECK(is(out.text(), "a line t...\n"));
  CHECK(is(out.text(), "a line t...\n"));
  out.add("and goes on");
  CHECK(is(out.text(), "a line t..."));
}

TEST(Format, utf8_is_cut_between_two_characters) {
  // Three bytes each; "..." and a place for a new line take four.
  for (std::size_t room = 4; room < 18; ++room) {
    const std::string_view text = format(std::span(g_room).first(room),
                                         "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    CHECK_EQUAL(0, (text.size() - 3) % 3);
    CHECK(text.ends_with("..."));
    CHECK(text.size() + 4 > room);
  }
  CHECK(is(format(g_room, cut("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 8)), "%s", "\xe2\x82\xac..."));
  // A text that is not UTF-8 is cut anywhere.
  CHECK(is(format(g_room, cut("\x80\x80\x80\x80\x80\x80\x80\x80\x80", 8)), "%s", "\x80\x80\x80\x80\x80..."));
}

TEST(Format, a_line_takes_less_than_400_bytes_of_stack) {
  if (coir::kStackInflation != 1) return;
  using Body = void (*)();
  const Body lines[] = {
      [] { format(g_room, "sensor ", 17, ": ", fixed(-2153, 2), "\n"); },
      [] { format(std::span(g_room).first(12), hex(1, 30), zeros(7, 9), "\n"); },
      [] { format(g_room, byte_size(123456), " ", 3210ms, " ", cut("a long name", 8)); },
      [] { format(g_room, "{\"name\":", json_quoted("\"\x01\xff"), "}"); },
      [] { format(g_room, left("name", 20), right(fixed(123, 1), 12)); },
  };
  for (const Body line : lines) {
    const std::size_t deep = coir::test::depth_of(line);
    if (deep < 16 || deep >= 400) FAIL(StringFromFormat("%zu bytes", deep).asCharString());
  }
}

}  // namespace format_test
