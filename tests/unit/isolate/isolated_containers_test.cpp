#include <coir/isolate.h>
#include <coir/message_containers.h>

#include <CppUTest/TestHarness.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/everywhere.h"
#include "tests/unit/cxx/heap.h"

namespace isolated_containers_test {

using coir::Error;
using coir::ErrorCode;
using coir::Isolate;
using coir::IsolatePort;
using coir::Message;
using coir::detail::MessageBytes;
using std::map;
using std::optional;
using std::string;
using std::vector;

// Strings, vectors, maps and optionals cross to an isolate and back, and bytes that are no such message are refused.

namespace {

// The example of message.h.
struct Line {
  std::string text;
  std::size_t marshalled_bytes() const noexcept { return text.size(); }
  void marshal(std::span<std::byte> into) const noexcept { memcpy(into.data(), text.data(), text.size()); }
  static std::expected<Line, coir::Error> unmarshal(std::span<const std::byte> from) noexcept {
    return Line{std::string(reinterpret_cast<const char*>(from.data()), from.size())};
  }

  bool operator==(const Line&) const = default;
};

struct Point {
  int x, y;
  bool operator==(const Point&) const = default;
};

// A type of somebody else's, which is marshalled from outside.
struct Person {
  string name;
  int age;
  bool operator==(const Person&) const = default;
};

}  // namespace

}  // namespace isolated_containers_test

template <>
struct coir::Marshal<isolated_containers_test::Person> {
  using Person = isolated_containers_test::Person;
  static std::size_t bytes(const Person& person) noexcept { return sizeof(int) + person.name.size(); }
  static void write(const Person& person, std::span<std::byte> into) noexcept {
    memcpy(into.data(), &person.age, sizeof(int));
    memcpy(into.data() + sizeof(int), person.name.data(), person.name.size());
  }
  static std::expected<Person, coir::Error> read(std::span<const std::byte> from) noexcept {
    if (from.size() < sizeof(int)) return std::unexpected(coir::Error{coir::ErrorCode::invalid});
    Person person{{reinterpret_cast<const char*>(from.data()) + sizeof(int), from.size() - sizeof(int)}, 0};
    memcpy(&person.age, from.data(), sizeof(int));
    return person;
  }
};

namespace isolated_containers_test {
namespace {

static_assert(Message<Line> && Message<Person> && Message<vector<Line>> && !Message<map<Point*, int>>);
static_assert(!Message<vector<int*>> && !Message<vector<std::string_view>> && !Message<map<string, const char*>> &&
              !Message<optional<std::unique_ptr<int>>> && !Message<vector<vector<std::unique_ptr<int>>>>);
// It is plain with message_containers.h and without.
static_assert(coir::PlainMessage<optional<int>> && !coir::MarshalledMessage<optional<int>>);

// Bytes is a block of exactly so many bytes, so that a sanitizer sees a look beyond it.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : size_(bytes.size()), data_(new std::byte[bytes.size()]) {
    if (size_ != 0) memcpy(data_.get(), bytes.data(), size_);
  }
  template <Message T>
  static Bytes of(const T& value) {
    Bytes bytes{vector<std::byte>(MessageBytes<T>::count(value))};
    MessageBytes<T>::write(value, bytes.all());
    return bytes;
  }
  std::span<std::byte> all() { return {data_.get(), size_}; }
  bool operator==(const Bytes& other) const {
    return size_ == other.size_ && memcmp(data_.get(), other.data_.get(), size_) == 0;
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

// Each of these values is a way to nest what can be sent.
template <class Visit>
void each_nesting(Visit visit) {
  const string large(100, 'x');
  const vector<string> texts{"one", "", large};
  const map<string, int> ages{{"", 0}, {"Ada", 36}, {large, 7}};
  visit(string());
  visit(large);
  visit(Line{"a line"});
  visit(Person{"Grace", 85});
  visit(vector<int>());
  visit(vector<int>{1, 2, 3});
  visit(vector<char>{'a', 'b', 'c'});
  visit(vector<bool>{true, false, true});
  visit(vector<Point>{{1, 2}, {3, 4}});
  visit(texts);
  visit(vector<Line>{{"one"}, {""}});
  visit(vector<Person>{{"Grace", 85}, {"", 0}});
  visit(vector<vector<int>>{{1}, {}, {2, 3}});
  visit(vector<vector<string>>{texts, {}, {""}});
  visit(vector<map<string, int>>{ages, {}});
  visit(vector<optional<string>>{"one", std::nullopt, ""});
  visit(map<int, int>());
  visit(map<int, Point>{{1, {2, 3}}, {4, {5, 6}}});
  visit(ages);
  visit(map<string, string>{{"a", large}, {"b", ""}});
  visit(map<string, vector<string>>{{"", {}}, {"texts", texts}});
  visit(map<vector<int>, map<int, string>>{{{}, {}}, {{1, 2}, {{3, "three"}}}});
  visit(map<string, optional<vector<string>>>{{"none", std::nullopt}, {"some", texts}});
  visit(optional<string>());
  visit(optional<string>(""));
  visit(optional<string>(large));
  visit(optional<vector<string>>(texts));
  visit(optional<map<string, int>>(ages));
  visit(optional<optional<string>>(optional<string>()));
  visit(optional<optional<string>>(optional<string>("both")));
  visit(map<string, vector<optional<map<int, vector<string>>>>>{{"deep", {std::nullopt, {{{1, texts}, {2, {}}}}}}});
}

// is_sound tells whether bytes are refused as invalid, or read as a value whose bytes they are.
template <Message T>
bool is_sound(Bytes& bytes) {
  auto value = MessageBytes<T>::read(bytes.all());
  return value ? Bytes::of(*value) == bytes : value.error() == ErrorCode::invalid;
}

}  // namespace

TEST_GROUP_BASE(IsolatedContainers, coir::test::Everywhere) {};

TEST(IsolatedContainers, every_nesting_is_read_as_it_was_written) {
  const std::size_t before = coir::test::entered();
  each_nesting([]<class T>(const T& value) {
    Bytes bytes = Bytes::of(value);
    const auto read = MessageBytes<T>::read(bytes.all());
    CHECK_TRUE(read && *read == value);
  });
  LONGS_EQUAL(before, coir::test::entered());
}

TEST(IsolatedContainers, a_truncated_message_is_refused_or_another_whole_one) {
  each_nesting([]<class T>(const T& value) {
    Bytes whole = Bytes::of(value);
    for (std::size_t size = 0; size < whole.all().size(); ++size) {
      Bytes part(whole.all().first(size));
      CHECK_TRUE(is_sound<T>(part));
    }
  });
}

TEST(IsolatedContainers, changed_bytes_are_refused_or_another_message) {
  each_nesting([]<class T>(const T& value) {
    Bytes whole = Bytes::of(value);
    for (std::size_t at = 0; at < whole.all().size(); ++at) {
      for (const int change : {0, 1, 2, 0x7f, 0x80, 0xff}) {
        Bytes changed(whole.all());
        changed.all()[at] = static_cast<std::byte>(change);
        CHECK_TRUE(is_sound<T>(changed));
      }
    }
  });
}

TEST(IsolatedContainers, hostile_lengths_are_refused_and_allocate_little) {
  each_nesting([]<class T>(const T& value) {
    Bytes whole = Bytes::of(value);
    const std::size_t size = whole.all().size();
    for (std::size_t at = 0; at + sizeof(std::size_t) <= size; ++at) {
      for (const std::size_t length : {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX / 2 + 1, size, size - 1, size * 1'000'000}) {
        Bytes changed(whole.all());
        memcpy(changed.all().data() + at, &length, sizeof length);
        {
          const coir::test::Limited limited(16 * size + 1024);  // beyond it the process would end
          static_cast<void>(MessageBytes<T>::read(changed.all()));
        }
        CHECK_TRUE(is_sound<T>(changed));
      }
    }
  });
}

TEST(IsolatedContainers, many_empty_elements_allocate_at_most_some_ten_times_their_bytes) {
  // Each of these elements is a length of 0, and a key of one byte.
  const std::size_t count = 1000;
  Bytes empty{vector<std::byte>(count * sizeof(std::size_t))};
  {
    const coir::test::Limited limited(12 * empty.all().size());
    CHECK_TRUE(MessageBytes<vector<string>>::read(empty.all()).has_value());
    CHECK_TRUE(MessageBytes<vector<vector<vector<int>>>>::read(empty.all()).has_value());
  }
  map<unsigned char, string> pairs;
  for (int key = 0; key < 256; ++key) pairs[static_cast<unsigned char>(key)];
  Bytes bytes = Bytes::of(pairs);
  const coir::test::Limited limited(12 * bytes.all().size());
  const bool read = MessageBytes<map<unsigned char, string>>::read(bytes.all()).has_value();
  CHECK_TRUE(read);
}

TEST(IsolatedContainers, a_map_with_keys_out_of_order_or_twice_is_refused) {
  const int twice[] = {1, 10, 1, 20}, order[] = {2, 10, 1, 20}, good[] = {1, 10, 2, 20};
  const auto read = [](const auto& words) {
    return MessageBytes<map<int, int>>::read(std::as_bytes(std::span(words)));
  };
  CHECK_TRUE(read(twice).error() == ErrorCode::invalid);
  CHECK_TRUE(read(order).error() == ErrorCode::invalid);
  CHECK_TRUE(read(good).has_value());
}

namespace {

template <class T>
bool goes_there_and_back(const T& value) {
  auto isolate = Isolate::spawn([](IsolatePort& port) -> std::expected<T, Error> {
    auto message = port.receive<T>();
    if (!message) return std::unexpected(message.error());
    if (auto sent = port.send(*message); !sent) return std::unexpected(sent.error());
    return message;
  });
  if (!isolate || !isolate->send(value)) return false;
  const auto back = isolate->template receive<T>();
  const auto result = isolate->template await<T>();
  return back && *back == value && result && *result == value;
}

}  // namespace

TEST(IsolatedContainers, every_nesting_goes_to_an_isolate_and_back_and_is_its_result) {
  const std::size_t before = coir::test::entered();
  everywhere([&] {
    each_nesting([this]<class T>(const T& value) { expect(goes_there_and_back(value)); });
    expect(goes_there_and_back(optional<int>(7)));
    expect(goes_there_and_back(optional<Point>()));
    expect(goes_there_and_back(vector<optional<int>>{1, std::nullopt}));
  });
  LONGS_EQUAL(before, coir::test::entered());
}

TEST(IsolatedContainers, a_message_beyond_the_queue_is_refused) {
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort& port) {
          auto text = port.receive<string>();
          return text ? text->size() : 0;
        },
        {.queue_bytes = 256});
    expect(isolate && isolate->send(string(241, 'x')).error() == ErrorCode::limit);
    expect(isolate->send(string(240, 'x')).has_value());
    expect(isolate->await<std::size_t>().value_or(0) == 240);
  });
}

}  // namespace isolated_containers_test
