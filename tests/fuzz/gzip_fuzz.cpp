// Compressed data decompress to the same at once and in pieces, nothing moves backwards, and all memory is given back.

#include <coir/detail/accounts.h>
#include <coir/http/client.h>
#include <coir/http/detail/content_coding.h>

#include <algorithm>
#include <cstring>

#include "require.h"

using namespace coir;
using Progress = http::ContentCoding::Progress;

namespace {

constexpr std::size_t kMost = 1 << 16;

struct Outcome {
  std::size_t size = 0;
  Progress progress = Progress::goes_on;
  char bytes[kMost];
};

// decompress feeds `step` bytes at a time into room for `room`.
void decompress(std::span<const char> data, std::size_t step, std::size_t room, Outcome& outcome) {
  outcome.size = 0;
  outcome.progress = Progress::goes_on;
  void* const state = http::kGzip.begin();
  require(state != nullptr);
  for (;;) {
    std::span<const char> from = data.first(std::min(step, data.size()));
    const std::size_t given = from.size();
    std::span<char> into = std::span(outcome.bytes).subspan(outcome.size);
    into = into.first(std::min(room, into.size()));
    const std::size_t had = into.size();
    outcome.progress = http::kGzip.decode(state, from, into);
    require(from.size() <= given && into.size() <= had);
    const std::size_t taken = given - from.size(), made = had - into.size();
    outcome.size += made;
    data = data.subspan(taken);
    if (outcome.progress == Progress::malformed || outcome.progress == Progress::no_memory) break;
    if (taken == 0 && made == 0) break;
    if (outcome.size == kMost) break;
  }
  http::kGzip.end(state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  static Outcome whole, cut;
  const std::span<const char> data(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  const std::size_t before = account::http.used();
  decompress(data, data.size(), kMost, whole);
  decompress(data, 1u + bytes[0], 1u + bytes[1], cut);
  require(account::http.used() == before);
  // If data are malformed, the way they were cut decides how much came out before.
  const std::size_t common = std::min(whole.size, cut.size);
  require(std::memcmp(whole.bytes, cut.bytes, common) == 0);
  if (whole.progress != Progress::malformed && cut.progress != Progress::malformed) require(whole.size == cut.size);
  return 0;
}
