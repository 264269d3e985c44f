#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/net/log_line.h>
#include <pthread.h>
#include <string.h>

#include <algorithm>

namespace coir {
namespace {

// A ring of bytes. The lock is held for one copy of a line, or of all of it; threads beside the workers log, too, so that it
// is no Spinlock, which a build with one worker leaves out.
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
constinit Atomic<bool> g_keeps{false};
constinit std::size_t g_end = 0;      // where the next byte goes
constinit std::size_t g_size = 0;     // how many bytes are kept
constinit std::uint64_t g_lines = 0;  // how many lines have been kept, those that are gone included
char g_ring[kRecentLogBytes];

std::size_t wrap(std::size_t at) noexcept {
  return at % kRecentLogBytes;
}

std::uint64_t lines_of(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

std::string_view copy(std::span<char> into) noexcept {
  const std::size_t size = std::min(g_size, into.size());
  const bool cut = g_size == kRecentLogBytes || size < g_size;
  const std::size_t start = wrap(g_end + kRecentLogBytes - size);
  const std::size_t first = std::min(size, kRecentLogBytes - start);
  memcpy(into.data(), g_ring + start, first);
  memcpy(into.data() + first, g_ring, size - first);
  const std::string_view text(into.data(), size);
  if (!cut) return text;
  // The first line may lack its beginning.
  const std::size_t end = text.find('\n');
  return end == text.npos ? std::string_view() : text.substr(end + 1);
}

}  // namespace

void keep_log_lines(bool keep) noexcept {
  g_keeps.store(keep, std::memory_order_relaxed);
}

void remember_log_line(std::string_view line) noexcept {
  if (!g_keeps.load(std::memory_order_relaxed) || line.empty() || line.size() > kRecentLogBytes) return;
  lock();
  const std::size_t first = std::min(line.size(), kRecentLogBytes - g_end);
  memcpy(g_ring + g_end, line.data(), first);
  memcpy(g_ring, line.data() + first, line.size() - first);
  g_end = wrap(g_end + line.size());
  g_size = std::min(g_size + line.size(), kRecentLogBytes);
  g_lines += lines_of(line);
  unlock();
}

std::string_view recent_log_lines(std::span<char> into, std::uint64_t* first) noexcept {
  lock();
  const std::string_view text = copy(into);
  if (first != nullptr) *first = g_lines - lines_of(text) + 1;
  unlock();
  return text;
}

// A signal may have come while the lock was held: then the ring is read as it is.
std::string_view crash_log_lines(std::span<char> into) noexcept {
  const bool locked = try_lock();
  const std::string_view text = copy(into);
  if (locked) unlock();
  return text;
}

}  // namespace coir
