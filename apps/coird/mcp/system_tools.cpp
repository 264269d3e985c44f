#include "system_tools.h"

#include "tools.h"

#if COIRD_MCP

#include <coir/http/wire/date.h>
#include <coir/inspect.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/net/log_line.h>
#include <coir/port/limits.h>
#include <sys/sysinfo.h>
#include <time.h>

#include <algorithm>
#include <new>

#include "../daemon.h"
#include "../members.h"
#include "workspace.h"

using coir::mcp::Call;

namespace {

constexpr std::string_view kNoMemory = "there is no memory for that at the moment";
constexpr std::size_t kMostFibers = 64;

// answer_json has a function write the structured content.
template <class Write>
void answer_json(Call& call, std::size_t room, Write write) noexcept {
  const Workspace memory(room);
  if (memory.bytes().empty()) return call.fail(kNoMemory);
  TextSink text(memory.bytes());
  coir::JsonWriter out(text);
  write(out);
  if (out.finish()) return call.structured_json(text.text());
  call.fail("the answer is too long");
}

// write_each writes an account, or a fiber, as an object.
template <class Each>
void write_each(coir::JsonWriter& out, const Each& each) noexcept {
  add_members(out.object(), each);
  out.end();
}

}  // namespace

std::optional<SystemFacts> system_facts(Call& call) {
  const auto& box = call.context<Toolbox>();
  SystemFacts facts{.version = COIR_VERSION,
                    .board = coir::port::board_name(),
                    .host = box.host,
                    .kernel = box.kernel,
                    .machine = box.machine};
  struct sysinfo machine = {};
  if (::sysinfo(&machine) == 0) {
    facts.uptime_s = machine.uptime;
    facts.memory_kb = std::uint64_t{machine.totalram} * machine.mem_unit / 1024;
  }
  const std::size_t spare = coir::MemoryWatch::spare();
  facts.available_kb = spare == SIZE_MAX ? 0 : spare / 1024;
  facts.resident_kb = coir::MemoryWatch::resident() / 1024;
  const coir::http::Server& server = *box.daemon->server;
  facts.connections = server.gauges().open;
  for (const auto& responses : server.counters().responses) facts.requests += responses.load(std::memory_order_relaxed);
  return facts;
}

void memory_ledger(Call& call) {
  answer_json(call, 8 * 1024, [](coir::JsonWriter& out) {
    out.object().name("total");
    write_each(out, coir::Ledger::total());
    out.name("accounts").array();
    for (const coir::Account* each = coir::Ledger::accounts(); each != nullptr; each = each->next())
      write_each(out, *each);
    out.end().end();
  });
}

void list_fibers(Call& call) {
  const Workspace memory(kMostFibers * sizeof(coir::FiberInfo));
  if (memory.bytes().empty()) return call.fail(kNoMemory);
  auto* const infos = reinterpret_cast<coir::FiberInfo*>(memory.bytes().data());
  for (std::size_t i = 0; i < kMostFibers; ++i) ::new (infos + i) coir::FiberInfo;
  const std::size_t count = coir::list_fibers({infos, kMostFibers});
  answer_json(call, 16 * 1024, [&](coir::JsonWriter& out) {
    out.object().member("count", count).name("fibers").array();
    for (const coir::FiberInfo& each : std::span(infos, std::min(count, kMostFibers))) write_each(out, each);
    out.end().end();
  });
}

void log_tail(Call& call, const LogTail& wanted) {
  const Workspace memory(coir::kRecentLogBytes);
  if (memory.bytes().empty()) return call.fail(kNoMemory);
  std::string_view text = coir::recent_log_lines(memory.bytes());
  std::size_t lines = 0, start = text.size();
  while (start > 0 && (text[start - 1] != '\n' || start == text.size() || ++lines < wanted.lines)) --start;
  text.remove_prefix(start);
  call.text(text.empty() ? "nothing was logged yet" : text);
}

void tell_time(Call& call) {
  char text[coir::http::kDateBytes];
  const std::int64_t now = ::time(nullptr);
  coir::http::format_date(now, text);
  const TimeNow time{.unix_seconds = now, .utc = {text, sizeof text}, .set = now >= coir::http::kClockIsSet};
  call.structured(kTime.entries, &time);
}

#endif
