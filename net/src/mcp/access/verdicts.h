#pragma once

#include <coir/net/detail/secret_hash.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>

#include "mcp/access/claims.h"

namespace coir::mcp {

// Verdicts remembers the latest judgements by their tokens' digests. If there is no room, refused tokens are evicted
// first, so that invented tokens evict no good one. No allocation. Any fiber or thread.
class Verdicts {
 public:
  static constexpr std::size_t kPlaces = 32;

  explicit Verdicts(std::chrono::seconds lifetime) noexcept : lifetime_(lifetime) {}

  // find tells whether a judgement is remembered, and puts it into `into`.
  bool find(const Digest& token, std::int64_t now_ns, Judgement& into) noexcept;
  // keep remembers one for as long as the token is valid and the lifetime lasts.
  void keep(const Digest& token, std::int64_t now_ns, const Judgement& judged) noexcept;

 private:
  struct Place {
    Digest token = {};
    std::int64_t until_ns = 0;
    Verdict verdict = Verdict::unknown;
    Principal who = {};
  };

  const std::chrono::seconds lifetime_;
  Spinlock lock_;
  Place places_[kPlaces];
};

}  // namespace coir::mcp
