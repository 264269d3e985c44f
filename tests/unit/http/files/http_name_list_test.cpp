// The names of a folder in order, in memory of a fixed size.

#include <CppUTest/TestHarness.h>
#include <stdio.h>

#include <string_view>

#include "net/src/http/files/name_list.h"

namespace http_name_list_test {

using coir::http::NameList;

TEST_GROUP(HttpNameList) {
  alignas(2) char memory[2048];

  // walk lists `count` names that begin with their number, shuffled, share by share, and returns how many shares it
  // took; 0 when a name is missing, twice or out of order.
  int walk(unsigned count, unsigned longest) {
    NameList list(memory);
    char after[NameList::kMostName];
    std::size_t after_size = 0;
    unsigned next = 0;
    for (int shares = 1; shares < 1000; ++shares) {
      list.begin({after, after_size});
      for (unsigned i = 0; i < count; ++i) {
        const unsigned number = i * 7919u % count;
        char name[NameList::kMostName + 1];
        memset(name, 'x', sizeof name);
        const int digits = snprintf(name, sizeof name, "%06u", number);
        name[digits] = 'x';
        list.add({name, digits + number % longest}, number % 3 == 0);
      }
      list.sort();
      for (std::size_t i = 0; i < list.count(); ++i) {
        unsigned number = 0;
        for (const char c : list.name(i).substr(0, 6)) number = number * 10 + static_cast<unsigned>(c - '0');
        if (number != next++ || list.folder(i) != (number % 3 == 0)) return 0;
      }
      if (!list.truncated()) return next == count ? shares : 0;
      const std::string_view last = list.name(list.count() - 1);
      after_size = last.size();
      memcpy(after, last.data(), last.size());
    }
    return 0;
  }
};

TEST(HttpNameList, names_that_fit_are_sorted_at_once) {
  LONGS_EQUAL(1, walk(50, 10));
  LONGS_EQUAL(1, walk(1, 1));
  LONGS_EQUAL(1, walk(0 + 2, 200));
}

TEST(HttpNameList, more_than_fits_comes_whole_and_in_order_share_by_share) {
  CHECK_TRUE(walk(1009, 1) > 1);
  CHECK_TRUE(walk(1009, 40) > 1);
  CHECK_TRUE(walk(101, 240) > 1);
}

}  // namespace http_name_list_test
