#include "control.h"

#if !COIR_NO_ASYNC

#include <coir/deadline.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <unistd.h>

#include <algorithm>

#include "../daemon.h"
#include "../members.h"
#include "answer.h"
#include "memory.h"

namespace {

// write_each writes an account, or a fiber, as an item.
template <class Each>
void write_each(ControlAnswer& answer, const Each& each) noexcept {
  add_members(answer.item(), each);
  answer.end_item();
}

std::uint64_t requests(const coir::http::ServerCounters& counters) noexcept {
  std::uint64_t sum = 0;
  for (const auto& each : counters.responses) sum += each.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace

std::string_view Control::tell_status(bool json) noexcept {
  const auto gauges = daemon_->server->gauges();
  const auto& counters = daemon_->server->counters();
  ControlAnswer answer(memory_->answer, json);
  answer.member("state", drains_.load() ? "draining" : "running")
      .member("version", COIR_VERSION)
      .member("pid", ::getpid())
      .member("uptime_s", (coir::monotonic_ns() - began_ns_) / 1'000'000'000)
      .member("connections", gauges.open)
      .member("active", gauges.active)
      .member("requests", requests(counters))
      .member("refused", counters.refused.load(std::memory_order_relaxed))
      .member("memory_bytes", coir::Ledger::total().used())
      .member("resident_bytes", coir::MemoryWatch::resident());
  return answer.finish();
}

std::string_view Control::tell_connections(bool json) noexcept {
  const auto gauges = daemon_->server->gauges();
  const auto& counters = daemon_->server->counters();
  const auto& options = daemon_->server->options();
  const auto count = [](const coir::Atomic<std::uint64_t>& each) { return each.load(std::memory_order_relaxed); };
  ControlAnswer answer(memory_->answer, json);
  answer.member("open", gauges.open)
      .member("most", options.max_connections)
      .member("idle", gauges.idle)
      .member("active", gauges.active)
      .member("most_active", options.max_active)
      .member("waiting", gauges.waiting)
      .member("kept", gauges.kept)
      .member("accepted", count(counters.accepted))
      .member("refused", count(counters.refused))
      .member("limited", count(counters.limited_connections))
      .member("evicted", count(counters.evicted))
      .member("expired", count(counters.expired));
  return answer.finish();
}

std::string_view Control::tell_memory(bool json) noexcept {
  ControlAnswer answer(memory_->answer, json);
  answer.list("accounts");
  write_each(answer, coir::Ledger::total());
  for (const coir::Account* each = coir::Ledger::accounts(); each != nullptr; each = each->next())
    write_each(answer, *each);
  answer.end_list();
  return answer.finish();
}

std::string_view Control::tell_fibers(bool json) noexcept {
  const std::size_t count = coir::list_fibers(memory_->fibers);
  ControlAnswer answer(memory_->answer, json);
  answer.member("count", count).list("fibers");
  for (const coir::FiberInfo& each : std::span(memory_->fibers).first(std::min(count, Memory::kMostFibers)))
    write_each(answer, each);
  answer.end_list();
  return answer.finish();
}

std::string_view Control::tell_log(bool json) noexcept {
  std::string_view lines = coir::recent_log_lines(memory_->log);
  ControlAnswer answer(memory_->answer, json);
  answer.list("lines");
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find('\n'), lines.size());
    answer.line(lines.substr(0, size));
    lines.remove_prefix(std::min(size + 1, lines.size()));
  }
  answer.end_list();
  return answer.finish();
}

#endif
