#include <coir/sum.h>

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <string.h>

namespace sum_test {

using coir::sum_of;
using coir::whole_text;

// Text that has lost or changed a byte is told from text that is whole.
TEST_GROUP(Sum) {
  // with_sum writes a text and the line of its sum into `room`.
  static std::string_view with_sum(std::string_view text, std::span<char> room) {
    char line[coir::kSumLineBytes];
    return coir::format(room, text, coir::sum_line(text, line));
  }
};

TEST(Sum, is_fnv_1a_of_32_bits_and_continues_behind_other_bytes) {
  char room[64];
  CHECK(sum_of(std::string_view()) == coir::kEmptySum);
  CHECK(sum_of(std::string_view("a")) == 0xe40c292c);
  CHECK(sum_of(std::string_view("foobar")) == 0xbf9cf968);
  CHECK(sum_of(std::string_view("bar"), sum_of(std::string_view("foo"))) == 0xbf9cf968);
  CHECK(with_sum("foobar", room) == "foobar# sum: bf9cf968\n");
}

TEST(Sum, whole_text_comes_back_and_any_changed_or_missing_byte_is_seen) {
  for (const std::string_view text : {std::string_view(), std::string_view("a: 1\n"), std::string_view("\0\0\0", 3)}) {
    char room[64];
    const std::string_view whole = with_sum(text, room);
    CHECK(whole_text(whole) == text);
    CHECK(!whole_text(text));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      char damaged[64];
      memcpy(damaged, whole.data(), whole.size());
      damaged[i] ^= 1;
      CHECK(!whole_text({damaged, whole.size()}));
      CHECK(!whole_text(whole.substr(0, i)));
      memmove(damaged + i, whole.data() + i + 1, whole.size() - i - 1);
      CHECK(!whole_text({damaged, whole.size() - 1}));
    }
    room[whole.size()] = '\n';
    CHECK(!whole_text({room, whole.size() + 1}));
  }
}

}  // namespace sum_test
