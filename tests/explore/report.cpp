#include "report.h"

#include <stdio.h>
#include <string.h>

namespace coir::explore {

namespace {

constexpr const char* kKinds[] = {"load",  "store", "exchange", "compare", "update", "fence",
                                  "sleep", "wake",  "poll",     "start",   "join",   "time"};
constexpr const char* kOrders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};

const char* last_part(const char* path) noexcept {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

}  // namespace

void Report::step(int thread, Step kind, const void* at, std::memory_order order,
                  const std::source_location& where) noexcept {
  line() = {.at = at,
            .bits = 0,
            .where = where,
            .thread = static_cast<std::uint8_t>(thread),
            .kind = kind,
            .order = static_cast<std::uint8_t>(order),
            .has_value = false,
            .late = false,
            .visible = false};
}

Report::Line* Report::latest(int thread) noexcept {
  for (std::uint32_t i = count_; i > 0 && i + kLines > count_; --i) {
    Line& one = lines_[(i - 1) % kLines];
    if (one.thread == thread && !one.visible) return &one;
  }
  return nullptr;
}

void Report::value(int thread, std::uint64_t bits) noexcept {
  if (Line* const one = latest(thread); one != nullptr) {
    one->bits = bits;
    one->has_value = true;
  }
}

void Report::late(int thread) noexcept {
  if (Line* const one = latest(thread); one != nullptr) one->late = true;
}

void Report::became_visible(int thread, const void* at, std::uint64_t bits) noexcept {
  line() = {.at = at,
            .bits = bits,
            .where = {},
            .thread = static_cast<std::uint8_t>(thread),
            .kind = Step::store,
            .order = 0,
            .has_value = true,
            .late = false,
            .visible = true};
}

void Report::print() const noexcept {
  // Addresses are named by the order in which they appear.
  static const void* names[512];
  unsigned named = 0;
  std::uint32_t from = count_ > kShown ? count_ - kShown : 0;
  if (from != 0) printf("  ... %u steps before\n", from);
  for (std::uint32_t i = from; i < count_; ++i) {
    const Line& one = lines_[i % kLines];
    unsigned name = 0;
    while (name < named && names[name] != one.at) ++name;
    if (name == named && named < 512) names[named++] = one.at;
    printf("  %*sthread %u  ", one.thread * 4, "", one.thread);
    if (one.visible) {
      printf("       a late store of w%u becomes visible: 0x%llx\n", name, static_cast<unsigned long long>(one.bits));
      continue;
    }
    printf("%-8s", kKinds[static_cast<int>(one.kind)]);
    if (one.at != nullptr) printf(" w%-3u %-7s", name, kOrders[one.order]);
    if (one.has_value) printf(" 0x%llx%s", static_cast<unsigned long long>(one.bits), one.late ? " (late)" : "");
    printf("  %s:%u\n", last_part(one.where.file_name()), one.where.line());
  }
}

}  // namespace coir::explore
