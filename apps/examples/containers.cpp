// Containers of the C++ library, whose memory is on the ledger: a blocking call returns lines, an isolate counts their
// words, fibers write reports, and at the end the heap is empty. Links coir::cxx.

#include <coir/blocking.h>
#include <coir/fiber.h>
#include <coir/heap.h>
#include <coir/isolate.h>
#include <coir/message_containers.h>
#include <coir/mutex.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

using Lines = std::vector<std::string>;
using Counts = std::map<std::string, int>;

namespace {

Lines read_lines() {
  return {"the board has a core and the core has a fiber", "the fiber has a stack", "",
          "a stack that is larger than a small string is on the heap"};
}

// count tells how often each word stands in each message of lines, until its owner closes.
void count(coir::IsolatePort& port) {
  while (auto lines = port.receive<Lines>()) {
    Counts counts;
    for (const std::string& line : *lines) {
      for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        ++counts[line.substr(at, end - at)];
        at = end + 1;
      }
    }
    if (!port.send(counts)) return;
  }
}

// most_frequent is the words that stand there more than twice, in order of their number.
std::vector<std::pair<int, std::string>> most_frequent(const Counts& counts) {
  std::vector<std::pair<int, std::string>> most;
  for (const auto& [word, times] : counts) {
    if (times > 2) most.emplace_back(times, word);
  }
  std::sort(most.begin(), most.end(), std::greater<>());
  return most;
}

std::expected<void, coir::Error> use_containers() {
  auto lines = coir::blocking([] { return read_lines(); });
  if (!lines) return std::unexpected(lines.error());

  auto counter = coir::Isolate::spawn(&count);
  if (!counter) return std::unexpected(counter.error());
  if (auto sent = counter->send(*lines); !sent) return sent;
  auto counts = counter->receive<Counts>();
  if (!counts) return std::unexpected(counts.error());
  counter->close();
  if (auto ended = counter->await(); !ended) return ended;
  for (const auto& [times, word] : most_frequent(*counts)) printf("%s: %d\n", word.c_str(), times);

  // A fiber's captures lie on its stack; the memory that they own lies on the heap. Fibers run on several workers:
  // a container that they share has a mutex.
  using Note = std::variant<int, std::string>;
  struct Notes {
    coir::Mutex mutex;
    std::unordered_map<std::string, Note> by_name;
  };
  auto notes = std::make_shared<Notes>();
  const std::function<std::expected<void, coir::Error>(const char*, Note)> note =
      [notes](const char* name, Note value) -> std::expected<void, coir::Error> {
    auto held = notes->mutex.lock();
    if (!held) return std::unexpected(held.error());
    notes->by_name.insert_or_assign(name, std::move(value));
    return {};
  };
  coir::Task<void> longest = coir::spawn([note, copy = *lines] {
    return note("longest", *std::max_element(copy.begin(), copy.end(), [](const std::string& a, const std::string& b) {
                  return a.size() < b.size();
                }));
  });
  coir::Task<void> words = coir::spawn([note, size = counts->size()] { return note("words", static_cast<int>(size)); });
  if (auto ended = longest.await(); !ended) return ended;
  if (auto ended = words.await(); !ended) return ended;
  printf("%d words; the longest line: \"%s\"\n", std::get<int>(notes->by_name.at("words")),
         std::get<std::string>(notes->by_name.at("longest")).c_str());

  std::optional<Lines> page(std::in_place, 1000, std::string(100, '-'));
  printf("the heap holds more than 100,000 bytes: %s\n", coir::account::heap.used() > 100'000 ? "yes" : "no");
  page.reset();
  return {};
}

}  // namespace

int main() {
  const int status = coir::run([] { return use_containers(); });
  coir::enter_heap_charges();
  printf("left on the heap: %zu bytes\n", coir::account::heap.used());
  return status;
}
