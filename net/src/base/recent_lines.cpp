#include "base/recent_lines.h"

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace coir {
namespace {

// Threads beside the workers log, too, so that it is no Spinlock, which a build with one worker leaves out.
#if COIR_NO_ASYNC  // one thread
void lock() noexcept {}
bool try_lock() noexcept {
  return true;
}
void unlock() noexcept {}
#else
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

void lock() noexcept {
  pthread_mutex_lock(&g_lock);
}
bool try_lock() noexcept {
  return pthread_mutex_trylock(&g_lock) == 0;
}
void unlock() noexcept {
  pthread_mutex_unlock(&g_lock);
}
#endif

// Head is in front of the text of each line. Lines follow each other without a gap, in the order of their numbers.
struct Head {
  std::uint64_t number;
  std::uint32_t unix_seconds;
  std::uint16_t size;
  std::uint8_t level, source;
};

constexpr std::size_t kMostSources = 16;  // those beyond share the last place, as "others"

constinit Atomic<bool> g_keeps{false};
constinit Atomic<std::uint8_t> g_level{static_cast<std::uint8_t>(LogLevel::info)};
constinit Atomic<void (*)() noexcept> g_call{nullptr};
constinit std::size_t g_size = 0;        // how many bytes are kept
constinit std::uint64_t g_numbered = 0;  // the number of the latest line
constinit std::uint64_t g_left_out = 0;
constinit const char* g_names[kMostSources] = {};
constinit std::size_t g_used[kMostSources] = {};  // bytes of each source
constinit std::size_t g_sources = 0;
char g_lines[kRecentLogBytes];

Head head_at(std::size_t at) noexcept {
  Head head;
  memcpy(&head, g_lines + at, sizeof head);
  return head;
}

std::size_t behind(std::size_t at, const Head& head) noexcept {
  return at + sizeof head + head.size;
}

// drop_oldest_of removes the oldest lines of a source that has some, until they were `bytes` long, so that not each new line
// has all others moved.
void drop_oldest_of(std::size_t source, std::size_t bytes) noexcept {
  std::size_t to = 0, at = 0, freed = 0;
  const auto keep = [&](std::size_t size) {
    memmove(g_lines + to, g_lines + at, size);
    to += size;
  };
  while (freed < bytes && at < g_size) {
    const Head head = head_at(at);
    const std::size_t size = behind(at, head) - at;
    if (head.source == source) {
      freed += size;
    } else {
      keep(size);
    }
    at += size;
  }
  keep(g_size - at);
  g_size = to;
  g_used[source] -= freed;
}

LogRecord record_of(std::size_t at, const Head& head) noexcept {
  return {.number = head.number,
          .unix_seconds = head.unix_seconds,
          .level = static_cast<LogLevel>(head.level),
          .source = head.source < g_sources ? g_names[head.source] : "unknown",
          .text = {g_lines + at + sizeof head, head.size}};
}

// each visits the lines. It stays within them where a signal has interrupted a change of them.
template <class Visit>
void each(Visit visit) noexcept {
  for (std::size_t at = 0; at + sizeof(Head) <= g_size;) {
    const Head head = head_at(at);
    const std::size_t next = behind(at, head);
    if (next > g_size) return;
    visit(record_of(at, head));
    at = next;
  }
}

std::string_view compose(std::span<char> into) noexcept {
  const auto bytes_of = [](const LogRecord& record) {
    Formatter counted{std::span<char>()};
    record.add_to(counted);
    return counted.needed();
  };
  std::size_t needed = 0;
  each([&](const LogRecord& record) { needed += bytes_of(record); });
  Formatter out(into);
  each([&](const LogRecord& record) {
    if (needed > into.size()) {
      needed -= bytes_of(record);
    } else {
      record.add_to(out);
    }
  });
  return out.text();
}

}  // namespace

std::uint8_t LogRing::index_of(LogSource& source) noexcept {
  if (source.index_ == 0) {
    if (g_sources < kMostSources) ++g_sources;
    source.index_ = static_cast<std::uint8_t>(g_sources);
    g_names[g_sources - 1] = g_names[g_sources - 1] == nullptr ? source.name_ : "others";
  }
  return source.index_ - 1;
}

bool LogRing::wanted(LogLevel level) noexcept {
  return static_cast<std::uint8_t>(level) <= g_level.load(std::memory_order_relaxed);
}

std::optional<std::uint64_t> LogRing::admit(LogSource& source, LogLevel level) noexcept {
  if (!wanted(level)) return std::nullopt;
  if (source.rate_.burst == 0) return 0;
  const std::int64_t spacing = std::chrono::nanoseconds(source.rate_.spacing).count();
  const std::int64_t now = monotonic_ns();
  lock();
  const std::int64_t full = std::max(source.full_until_ns_, now) + spacing;
  std::optional<std::uint64_t> left_out;
  if (full - now > spacing * source.rate_.burst) {
    ++source.left_out_;
    ++g_left_out;
  } else {
    source.full_until_ns_ = full;
    left_out = std::exchange(source.left_out_, 0);
  }
  unlock();
  return left_out;
}

void LogRing::keep(LogSource& source, LogLevel level, std::string_view line) noexcept {
  if (!g_keeps.load(std::memory_order_relaxed)) return;
  if (line.ends_with('\n')) line.remove_suffix(1);
  line = line.substr(0, kMostKeptOfLine);
  const std::size_t size = sizeof(Head) + line.size();
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  lock();
  const std::uint8_t index = index_of(source);
  const auto weight = [&](std::size_t of) { return g_used[of] + (of == index && g_used[of] != 0 ? size : 0); };
  while (g_size + size > kRecentLogBytes) {
    std::size_t most = 0;
    for (std::size_t other = 1; other < g_sources; ++other) {
      if (weight(other) > weight(most)) most = other;
    }
    drop_oldest_of(most, std::min(kRecentLogBytes / 8, g_used[most] / 2));
  }
  const Head head = {.number = ++g_numbered,
                     .unix_seconds = static_cast<std::uint32_t>(now.tv_sec),
                     .size = static_cast<std::uint16_t>(line.size()),
                     .level = static_cast<std::uint8_t>(level),
                     .source = index};
  memcpy(g_lines + g_size, &head, sizeof head);
  memcpy(g_lines + g_size + sizeof head, line.data(), line.size());
  g_size += size;
  g_used[index] += size;
  unlock();
  // acquire: pairs with on_log_line's release.
  if (auto* const call = g_call.load(std::memory_order_acquire)) call();
}

void keep_log_lines(bool keep) noexcept {
  g_keeps.store(keep, std::memory_order_relaxed);
}

void set_log_level(LogLevel least) noexcept {
  g_level.store(static_cast<std::uint8_t>(least), std::memory_order_relaxed);
}

void on_log_line(void (*call)() noexcept) noexcept {
  g_call.store(call, std::memory_order_release);
}

std::uint64_t log_lines_left_out() noexcept {
  lock();
  const std::uint64_t count = g_left_out;
  unlock();
  return count;
}

std::optional<LogRecord> LogReader::read(std::span<char> room) noexcept {
  std::optional<LogRecord> found;
  lock();
  for (std::size_t at = 0; at < g_size;) {
    const Head head = head_at(at);
    if (head.number >= next_) {
      if (next_ != 0) lost_ += head.number - next_;
      next_ = head.number + 1;
      if (head.level <= static_cast<std::uint8_t>(least_)) {
        found = record_of(at, head);
        found->text = {room.data(), found->text.copy(room.data(), room.size())};
        break;
      }
    }
    at = behind(at, head);
  }
  unlock();
  return found;
}

std::string_view recent_log_lines(std::span<char> into) noexcept {
  lock();
  const std::string_view text = compose(into);
  unlock();
  return text;
}

// A signal may have come while the lock was held: then the lines are read as they are.
std::string_view crash_log_lines(std::span<char> into) noexcept {
  const bool locked = try_lock();
  const std::string_view text = compose(into);
  if (locked) unlock();
  return text;
}

}  // namespace coir
