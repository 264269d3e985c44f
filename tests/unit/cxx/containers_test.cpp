#include <coir/heap.h>

#include <CppUTest/TestHarness.h>
#include <signal.h>

#include <algorithm>
#include <any>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "tests/support/child.h"
#include "tests/unit/cxx/heap.h"

namespace containers_test {

// The containers of the C++ library work on coir::cxx alone, and leave nothing on the account.

TEST_GROUP(Containers) {
  const std::size_t before = coir::test::entered();

  // back tells whether the account is where it was before the test.
  bool back() const { return coir::test::entered() == before; }
};

TEST(Containers, a_vector_grows_sorts_and_frees) {
  {
    std::vector<int> numbers;
    for (int i = 0; i < 10'000; ++i) numbers.push_back(i * 7919 % 10'007);
    CHECK_TRUE(coir::test::entered() >= before + 10'000 * sizeof(int));
    std::sort(numbers.begin(), numbers.end());
    CHECK_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    std::vector<double> halves(numbers.begin(), numbers.end());
    std::sort(halves.begin(), halves.end());
    std::vector<std::vector<std::string>> deep(10, std::vector<std::string>(10, std::string(100, 'x')));
    deep.erase(deep.begin() + 3);
    std::vector<bool> bits(1000, true);
    CHECK_TRUE(deep.size() == 9 && deep[8][9].size() == 100 && bits[999] && halves[9'999] > 1);
  }
  CHECK_TRUE(back());
}

TEST(Containers, a_string_does_all_that_a_string_does) {
  {
    std::string text = "small";
    text += std::string(" and then larger than the small string is");
    text.insert(5, 1, ',').append(3, '!').replace(0, 5, "Small").push_back('?');
    const std::string copy(text), piece(text, 0, 5);
    std::string joined = "<" + text + ">";
    joined.resize(joined.size() + 10, '-');
    joined.reserve(1000);
    joined.erase(0, 1);
    CHECK_TRUE(copy == text && piece == "Small" && text.find("larger") == 16 && text.rfind('!') == text.size() - 2);
    CHECK_TRUE(text.compare(0, 5, "Small") == 0 && text.find_first_of("xyz") == std::string::npos);
    CHECK_TRUE(text.find_last_not_of("?!") != std::string::npos && joined.at(0) == 'S' && joined < text + "~");
    STRCMP_EQUAL("-9223372036854775808 18446744073709551615 7",
                 (std::to_string(INT64_MIN) + ' ' + std::to_string(UINT64_MAX) + ' ' + std::to_string(7)).c_str());
  }
  CHECK_TRUE(back());
}

TEST(Containers, a_map_and_a_set_stay_in_order) {
  {
    std::map<std::string, int> ages;
    std::set<int> seen;
    for (int i = 0; i < 1000; ++i) {
      ages[std::to_string(i * 31 % 1000)] = i;
      seen.insert(i * 31 % 1000);
    }
    for (int i = 0; i < 1000; i += 2) ages.erase(std::to_string(i));
    CHECK_TRUE(ages.size() == 500 && seen.size() == 1000 && ages.begin()->first == "1");
    CHECK_TRUE(ages.find("31")->second == 1 && *seen.lower_bound(500) == 500);
  }
  CHECK_TRUE(back());
}

TEST(Containers, an_unordered_map_grows_through_primes) {
  {
    std::unordered_map<std::string, int> numbers;
    std::unordered_set<int> few{1, 2, 3};
    for (int i = 0; i < 5000; ++i) numbers.emplace(std::to_string(i), i);
    bool all = true;
    for (int i = 0; i < 5000; ++i) all = all && numbers.at(std::to_string(i)) == i;
    CHECK_TRUE(all && few.contains(2) && !few.contains(4));
    // The smallest prime that is not smaller, at each place where trial division could be wrong by one.
    const std::size_t wanted[][2] = {{3, 3},     {5, 5},     {6, 7},       {9, 11},      {25, 29},         {48, 53},
                                     {100, 101}, {121, 127}, {7919, 7919}, {7920, 7927}, {99'992, 100'003}};
    for (const auto& [least, prime] : wanted) {
      std::unordered_set<int> set;
      set.rehash(least);
      LONGS_EQUAL(prime, set.bucket_count());
    }
  }
  CHECK_TRUE(back());
}

TEST(Containers, a_function_holds_closures_small_and_large) {
  {
    std::string name = "a name that is larger than a small string";
    int calls = 0;
    std::function<int(int)> small = [&calls](int n) { return calls += n; };
    std::function<std::size_t()> large = [name, copy = name] { return name.size() + copy.size(); };
    const std::function<std::size_t()> other = large;
    large = nullptr;
    CHECK_TRUE(small(3) == 3 && small(4) == 7 && other() == 2 * name.size() && !large);
  }
  CHECK_TRUE(back());
}

TEST(Containers, pointers_free_what_they_own) {
  static int s_alive = 0;
  struct Counted {
    Counted() { ++s_alive; }
    ~Counted() { --s_alive; }
  };
  struct Base {
    virtual ~Base() = default;
    virtual int number() const = 0;
  };
  struct Derived : Base {
    int number() const override { return 42; }
  };
  {
    auto one = std::make_unique<Counted[]>(5);
    LONGS_EQUAL(5, s_alive);
    auto shared = std::make_shared<Counted>();
    std::shared_ptr<Counted> plain(new Counted), with(new Counted, [](Counted* counted) { delete counted; });
    std::weak_ptr<Counted> weak = shared;
    LONGS_EQUAL(8, s_alive);
    {
      const auto second = weak.lock();
      CHECK_TRUE(second == shared && second.use_count() == 2);
      shared.reset();
      LONGS_EQUAL(8, s_alive);
    }
    LONGS_EQUAL(7, s_alive);
    CHECK_TRUE(weak.expired() && weak.lock() == nullptr);
    const std::unique_ptr<Base> base = std::make_unique<Derived>();
    LONGS_EQUAL(42, base->number());
  }
  LONGS_EQUAL(0, s_alive);
  CHECK_TRUE(back());
}

TEST(Containers, an_optional_and_a_variant_end_what_they_hold) {
  {
    std::optional<std::string> maybe;
    maybe.emplace(100, 'x');
    std::variant<int, std::string, std::vector<int>> any = std::string(100, 'y');
    CHECK_TRUE(std::get<std::string>(any).size() == 100 && maybe->size() == 100);
    any = std::vector<int>(100);
    CHECK_TRUE(std::visit([](const auto& held) { return sizeof held == sizeof(std::vector<int>); }, any));
    maybe.reset();
    any = 7;
    CHECK_TRUE(std::get_if<int>(&any) != nullptr);
  }
  CHECK_TRUE(back());
}

TEST(Containers, the_others_of_the_readme_work_too) {
  {
    std::deque<std::string> both;
    std::list<std::string> list;
    std::forward_list<int> forward;
    std::priority_queue<int> heap;
    std::queue<int> queue;
    std::stack<std::string> stack;
    std::multimap<int, int> pairs;
    std::any any = std::string(100, 'x');
    for (int i = 0; i < 1000; ++i) {
      both.push_front(std::to_string(i));
      list.push_back(both.front());
      forward.push_front(i);
      heap.push(i * 31 % 1000);
      queue.push(i);
      stack.push(both.front());
      pairs.emplace(i % 10, i);
    }
    std::vector<int> numbers(forward.begin(), forward.end());
    std::stable_sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 10 < b % 10; });
    CHECK_TRUE(both.front() == "999" && both.back() == "0" && list.back() == "999" && numbers[0] == 990);
    CHECK_TRUE(heap.top() == 999 && queue.front() == 0 && stack.top() == "999" && pairs.count(3) == 100);
    CHECK_TRUE(std::any_cast<std::string>(&any)->size() == 100);
  }
  CHECK_TRUE(back());
}

namespace {

// dies tells whether `body` ends the process with a line that holds `words`.
template <class Body>
bool dies(const char* words, Body body) {
  const coir::test::ChildEnd end = coir::test::in_child([body] {
    body();
    return 0;
  });
  return end.signal == SIGABRT && end.lines() == 1 && end.wrote("coir: ") && end.wrote(words);
}

}  // namespace

TEST(Containers, where_the_library_would_throw_a_line_says_why) {
  CHECK_TRUE(dies("out_of_range", [] { return std::vector<int>(3).at(4); }));
  CHECK_TRUE(dies("out_of_range", [] { return std::string("abc").substr(4).size(); }));
  CHECK_TRUE(dies("length_error", [] { std::vector<int>().reserve(SIZE_MAX / 2); }));
  CHECK_TRUE(dies("bad_optional_access", [] { return std::optional<int>().value(); }));
  CHECK_TRUE(dies("bad_variant_access", [] { return std::get<1>(std::variant<int, long>(1)); }));
  CHECK_TRUE(dies("bad_function_call", [] { return std::function<int()>()(); }));
}

}  // namespace containers_test
