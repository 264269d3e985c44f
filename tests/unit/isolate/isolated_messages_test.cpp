#include <coir/isolate.h>

#include <CppUTest/TestHarness.h>

#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "tests/support/everywhere.h"

namespace isolated_messages_test {

using coir::Error;
using coir::ErrorCode;
using coir::Isolate;
using coir::IsolatePort;

// Messages between an isolate and its owner: which types may cross, and how messages lie in the queue.

namespace {

struct Job {
  int number;
  char what[20];
};

// Line is a message of no fixed size, and not trivially copyable.
class Line {
 public:
  explicit Line(std::string_view text) noexcept : size_(text.copy(text_, sizeof text_)) {}
  Line(const Line& other) noexcept : Line(other.text()) {}
  Line& operator=(const Line&) = delete;

  std::string_view text() const noexcept { return {text_, size_}; }
  Line with(char more) const noexcept {
    Line longer(*this);
    longer.text_[longer.size_++] = more;
    return longer;
  }

  std::size_t marshalled_bytes() const noexcept { return size_; }
  void marshal(std::span<std::byte> into) const noexcept { memcpy(into.data(), text_, size_); }
  static std::expected<Line, Error> unmarshal(std::span<const std::byte> from) noexcept {
    if (from.empty()) return std::unexpected(Error{ErrorCode::invalid});
    return Line({reinterpret_cast<const char*>(from.data()), from.size()});
  }

 private:
  char text_[300];
  std::size_t size_;
};

// Owner is not trivially copyable: it does not cross.
struct Owner {
  std::unique_ptr<int> owned;
};

template <class T>
constexpr bool kCrosses = requires(Isolate& isolate, IsolatePort& port, const T& message) {
  isolate.send(message);
  port.send(message);
  isolate.receive<T>();
};
static_assert(kCrosses<int> && kCrosses<Job> && kCrosses<Line>);
static_assert(!kCrosses<Owner> && !kCrosses<int*> && !kCrosses<const char*> && !kCrosses<std::string_view> &&
              !kCrosses<std::span<int>> && !kCrosses<std::nullptr_t>);

template <class F>
constexpr bool kRuns = requires(F f) { Isolate::spawn(f); };
constexpr auto kNoResult = [](IsolatePort&) {};
constexpr auto kNoPort = [] {};
constexpr auto kPointerResult = [](IsolatePort&) -> const char* { return ""; };
constexpr auto kOwning = [owner = Owner()](IsolatePort&) { return owner.owned == nullptr; };
static_assert(kRuns<decltype(kNoResult)> && !kRuns<decltype(kNoPort)> && !kRuns<decltype(kPointerResult)> &&
              !kRuns<decltype(kOwning)>);

}  // namespace

TEST_GROUP_BASE(IsolatedMessages, coir::test::Everywhere) {};

TEST(IsolatedMessages, messages_go_there_and_back_in_order) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      while (auto job = port.receive<Job>()) {
        ++job->number;
        static_cast<void>(port.send(*job));
      }
    });
    expect(isolate.has_value());
    for (int i = 0; i < 20; ++i) expect(isolate->send(Job{i, "fold"}).has_value());
    for (int i = 0; i < 20; ++i) {
      auto job = isolate->receive<Job>();
      expect(job && job->number == i + 1 && std::string_view(job->what) == "fold");
    }
    isolate->close();
    expect(isolate->await().has_value());
  });
}

TEST(IsolatedMessages, a_marshalled_message_of_any_size_crosses) {
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort& port) {
          while (auto line = port.receive<Line>()) static_cast<void>(port.send(line->with('!')));
        },
        {.queue_bytes = 256});
    expect(isolate.has_value());
    char text[241];
    memset(text, 'x', sizeof text);
    // 240 bytes and their header fill the queue; each size leaves its records at other places of the ring.
    for (std::size_t size = 1; size < 240; size += 7) {
      const Line line(std::string_view(text, size));
      expect(isolate->send(line).has_value());
      auto back = isolate->receive<Line>();
      expect(back && back->text() == line.with('!').text());
    }
    expect(isolate->send(Line(std::string_view(text, 241))).error() == ErrorCode::limit);
  });
}

TEST(IsolatedMessages, messages_of_uneven_size_go_round_the_ring_whole_and_in_order) {
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort& port) {
          while (auto line = port.receive<Line>()) static_cast<void>(port.send(*line));
        },
        {.queue_bytes = 256});
    expect(isolate.has_value());
    char text[100];
    memset(text, 'x', sizeof text);
    constexpr int kLines = 200, kAhead = 3;
    // Some are always on their way, so that neither ring is ever found empty and begun anew.
    const auto line = [&text](int i) {
      return Line(std::string_view(text, static_cast<std::size_t>(1 + i * 29 % 83)));
    };
    for (int i = 0; i < kLines; ++i) {
      expect(isolate->send(line(i)).has_value());
      if (i < kAhead) continue;
      auto back = isolate->receive<Line>();
      expect(back && back->text() == line(i - kAhead).text());
    }
  });
}

TEST(IsolatedMessages, a_message_of_another_type_stays_for_who_asks_for_it) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) { static_cast<void>(port.send(7)); });
    expect(isolate.has_value());
    expect(isolate->receive<long>().error() == ErrorCode::invalid);
    expect(isolate->receive<int>().value_or(0) == 7);
    expect(isolate->receive<int>().error() == ErrorCode::closed);
  });
}

TEST(IsolatedMessages, a_message_that_unmarshals_badly_is_an_error_and_gone) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      static_cast<void>(port.send(Line("")));
      static_cast<void>(port.send(Line("next")));
    });
    expect(isolate.has_value());
    expect(isolate->receive<Line>().error() == ErrorCode::invalid);
    auto next = isolate->receive<Line>();
    expect(next && next->text() == "next");
  });
}

}  // namespace isolated_messages_test
