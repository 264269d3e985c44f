#include "names/name_cache.h"

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <netinet/in.h>

#include <string_view>

namespace name_cache_test {

using namespace coir;
using namespace coir::names;

namespace {

Name numbered(unsigned number, std::string_view domain = ".of-the-house.example") {
  char text[64];
  Formatter out(text);
  out.add("host-", number, domain);
  Name name;
  CHECK_TRUE(name.set(out.text()));
  return name;
}

Addresses numbered_addresses(unsigned number, std::size_t count = 1) {
  Addresses addresses;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char bytes[] = {192, 0, static_cast<unsigned char>(number >> 8), static_cast<unsigned char>(number)};
    PackedAddresses::add(addresses, bytes);
  }
  return addresses;
}

std::uint32_t first_of(const Addresses& addresses) {
  const Address first = addresses[0];
  return ntohl(reinterpret_cast<const sockaddr_in*>(first.get())->sin_addr.s_addr) & 0xffff;
}

}  // namespace

TEST_GROUP(NameCache) {
  void setup() override { forget_all(); }  // namespace name_cache_test
  void teardown() override { forget_all(); }
};

TEST(NameCache, a_name_that_was_never_added_is_not_known) {
  Addresses found;
  CHECK_FALSE(recall(numbered(1), found));
}

TEST(NameCache, the_last_answer_counts) {
  remember(numbered(1), numbered_addresses(1), 60);
  remember(numbered(1), numbered_addresses(2, 3), 60);
  Addresses found;
  CHECK_TRUE(recall(numbered(1), found));
  CHECK_EQUAL(3u, found.size());
  CHECK_EQUAL(2u, first_of(found));
}

TEST(NameCache, that_there_is_nothing_is_an_answer) {
  remember(numbered(1), Addresses(), 60);
  Addresses found;
  CHECK_TRUE(recall(numbered(1), found));
  CHECK_EQUAL(0u, found.size());
}

TEST(NameCache, no_seconds_are_not_kept) {
  remember(numbered(1), numbered_addresses(1), 0);
  Addresses found;
  CHECK_FALSE(recall(numbered(1), found));
}

TEST(NameCache, the_newest_answers_take_the_place_of_the_oldest_and_none_is_mixed_up) {
  constexpr unsigned kNames = 3000;
  for (unsigned i = 0; i < kNames; ++i) {
    // They have many sizes, so that the ring's end falls everywhere.
    remember(numbered(i, i % 3 == 0 ? ".example" : ".of-the-house.example"), numbered_addresses(i, i % 9), 60);
    std::size_t kept = 0;
    for (unsigned back = 0; back < 200 && back <= i; ++back) {
      const unsigned asked = i - back;
      Addresses found;
      const bool known = recall(numbered(asked, asked % 3 == 0 ? ".example" : ".of-the-house.example"), found);
      if (!known) continue;
      CHECK_EQUAL(kept, back);  // the newest, without a gap
      ++kept;
      CHECK_EQUAL(asked % 9, found.size());
      if (found.size() != 0) CHECK_EQUAL(asked, first_of(found));
      if (back > 12 && i % 64 != 0) break;
    }
    CHECK_TRUE(kept > 12 || i < 13);
  }
}

}  // namespace name_cache_test
