#include "control.h"

#if !COIR_NO_ASYNC

#include <coir/deadline.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <span>

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

std::uint64_t value_of(const coir::Atomic<std::uint64_t>& counter) noexcept {
  return counter.load(std::memory_order_relaxed);
}

// cpu_ms is the time that the process has had a CPU.
std::uint64_t cpu_ms() noexcept {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1000 + static_cast<std::uint64_t>(used.tv_nsec) / 1'000'000;
}

void add_accounts(ControlAnswer& answer) noexcept {
  answer.list("accounts");
  write_each(answer, coir::Ledger::total());
  for (const coir::Account* each = coir::Ledger::accounts(); each != nullptr; each = each->next())
    write_each(answer, *each);
  answer.end_list();
}

void add_connections(ControlAnswer& answer, const coir::http::Server& server) noexcept {
  const auto gauges = server.gauges();
  const auto& counters = server.counters();
  const auto& options = server.options();
  answer.member("open", gauges.open)
      .member("most", options.max_connections)
      .member("idle", gauges.idle)
      .member("active", gauges.active)
      .member("most_active", options.max_active)
      .member("waiting", gauges.waiting)
      .member("kept", gauges.kept)
      .member("accepted", value_of(counters.accepted))
      .member("refused", value_of(counters.refused))
      .member("limited", value_of(counters.limited_connections))
      .member("evicted", value_of(counters.evicted))
      .member("expired", value_of(counters.expired));
}

// visit_upstreams visits the servers that requests are forwarded to.
template <class Visit>
void visit_upstreams([[maybe_unused]] const Daemon& daemon, [[maybe_unused]] Visit visit) noexcept {
#if COIRD_GATEWAY
  if (daemon.gateway) each_upstream(daemon.gateway->proxy(), visit);
#endif
#if COIRD_SCRIPTS
  if (daemon.scripts) {
    for (const auto& each : daemon.scripts->applications()) each_upstream(*each, visit);
  }
#endif
}

}  // namespace

void Control::add_status(ControlAnswer& answer) noexcept {
  answer.member("state", daemon_->drains.load() ? "draining" : "running")
      .member("version", COIR_VERSION)
      .member("pid", ::getpid())
      .member("uptime_s", (coir::monotonic_ns() - began_ns_) / 1'000'000'000)
      .member("safe_mode", daemon_->safe != nullptr);
}

std::string_view Control::tell_status(bool json) noexcept {
  const auto gauges = daemon_->server->gauges();
  const auto& counters = daemon_->server->counters();
  ControlAnswer answer(memory_->answer, json);
  add_status(answer);
  answer.member("connections", gauges.open)
      .member("active", gauges.active)
      .member("requests", requests(counters))
      .member("refused", value_of(counters.refused))
      .member("memory_bytes", coir::Ledger::total().used())
      .member("resident_bytes", coir::MemoryWatch::resident())
      .member("cpu_ms", cpu_ms());
  return answer.finish();
}

std::string_view Control::tell_end() noexcept {
  ControlAnswer answer(memory_->answer, false);
  answer.member("drain_timeout_ms", daemon_->options->drain_timeout.count());
  return answer.finish();
}

std::string_view Control::tell_top(bool json) noexcept {
  ControlAnswer answer(memory_->answer, json);
  add_status(answer);
  add_connections(answer, *daemon_->server);
  answer.member("requests", requests(daemon_->server->counters()))
      .member("resident_bytes", coir::MemoryWatch::resident())
      .member("cpu_ms", cpu_ms())
      .member("fibers", coir::list_fibers({}));
  add_accounts(answer);
  return answer.finish();
}

std::string_view Control::tell_connections(bool json) noexcept {
  ControlAnswer answer(memory_->answer, json);
  add_connections(answer, *daemon_->server);
  return answer.finish();
}

std::string_view Control::tell_memory(bool json) noexcept {
  ControlAnswer answer(memory_->answer, json);
  add_accounts(answer);
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

std::string_view Control::tell_stacks(bool json) noexcept {
  const std::size_t count = coir::list_fibers(memory_->fibers, memory_->calls);
  ControlAnswer answer(memory_->answer, json);
  answer.member("count", count).list("stacks");
  for (std::size_t i = 0; i < std::min(count, Memory::kMostFibers); ++i) {
    const coir::FiberInfo& fiber = memory_->fibers[i];
    answer.item()
        .member("id", fiber.id)
        .member("name", fiber.name)
        .member("stack_bytes", fiber.stack_bytes)
        .member("stack_peak_bytes", fiber.stack_peak_bytes)
        .array("calls");
    for (std::size_t call = 0; call < memory_->calls[i].count; ++call)
      answer.element(coir::hex(memory_->calls[i].calls[call]));
    answer.end_array();
    answer.end_item();
  }
  answer.end_list();
  return answer.finish();
}

std::string_view Control::tell_routes(bool json) noexcept {
  constexpr std::size_t kMostItem = 1024;
  ControlAnswer answer(memory_->answer, json);
  std::size_t left_out = 0;
  answer.list("servers");
  const auto add = [&](const auto& server) {
    if (!answer.has_room(kMostItem)) {
      ++left_out;
      return;
    }
    answer.item().member("route", server.group);
    if (!server.host.empty()) answer.member("host", server.host);
    answer.member("protocol", server.protocol)
        .member("server", server.server)
        .member("up", server.up)
        .member("in_use", server.in_use)
        .member("resting", server.resting)
        .member("requests", server.requests)
        .member("failures", server.failures)
        .member("failed_checks", server.failed_checks)
        .member("downs", server.downs)
        .end_item();
  };
  visit_upstreams(*daemon_, add);
  answer.end_list();
  answer.member("left_out", left_out);
  return answer.finish();
}

#endif
