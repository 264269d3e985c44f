#include <coir/sum.h>

#include <CppUTest/TestHarness.h>

#include <string>

namespace sum_test {

using coir::sum_line;
using coir::sum_of;
using coir::whole_text;

// Text that has lost or changed a byte is told from text that is whole.
TEST_GROUP(Sum) {
  static std::string with_sum(std::string text) {
    char line[coir::kSumLineBytes];
    return text.append(sum_line(text, line));
  }
};

TEST(Sum, is_fnv_1a_of_32_bits_and_continues_behind_other_bytes) {
  CHECK(sum_of(std::string_view()) == coir::kEmptySum);
  CHECK(sum_of(std::string_view("a")) == 0xe40c292c);
  CHECK(sum_of(std::string_view("foobar")) == 0xbf9cf968);
  CHECK(sum_of(std::string_view("bar"), sum_of(std::string_view("foo"))) == 0xbf9cf968);
  CHECK(with_sum("foobar") == "foobar# sum: bf9cf968\n");
}

TEST(Sum, whole_text_comes_back_and_any_changed_or_missing_byte_is_seen) {
  for (const std::string& text : {std::string(), std::string("a: 1\n"), std::string(3, '\0')}) {
    const std::string whole = with_sum(text);
    CHECK(whole_text(whole) == text);
    CHECK(!whole_text(text));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] ^= 1;
      CHECK(!whole_text(damaged));
      CHECK(!whole_text(whole.substr(0, i)));
      CHECK(!whole_text(whole.substr(0, i).append(whole.substr(i + 1))));
    }
    CHECK(!whole_text(whole + "\n"));
  }
}

}  // namespace sum_test
