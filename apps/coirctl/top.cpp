// coirctl top. Declared in control.h.
#include <coir/deadline.h>
#include <coir/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "asking.h"
#include "output.h"

namespace {

constexpr int kRedrawMs = 1000;

// value_of is the value of a line "key: value"; empty: there is none.
std::string_view value_of(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(": ")) return line.substr(key.size() + 2);
  }
  return {};
}

std::uint64_t number_in(std::string_view text) noexcept {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::uint64_t number_of(std::string_view text, std::string_view key) noexcept {
  return number_in(value_of(text, key));
}

// member_of is a number of an item "key=value key=value".
std::uint64_t member_of(std::string_view item, std::string_view key) noexcept {
  const std::size_t at = item.find(key);
  return at == item.npos ? 0 : number_in(item.substr(at + key.size()));
}

// Sample is what rates are made of.
struct Sample {
  std::int64_t at_ns = 0;  // 0: there is none
  std::uint64_t requests = 0;
  std::uint64_t cpu_ms = 0;
};

void add_rates(coir::Formatter& out, std::string_view text, const Sample& now, const Sample& before) noexcept {
  out.add("requests     ", now.requests);
  const auto passed_ms = static_cast<std::uint64_t>(now.at_ns - before.at_ns) / 1'000'000;
  if (before.at_ns != 0 && passed_ms != 0 && now.requests >= before.requests && now.cpu_ms >= before.cpu_ms) {
    out.add(", ", coir::fixed((now.requests - before.requests) * 10'000 / passed_ms, 1), " a second; CPU ",
            coir::fixed((now.cpu_ms - before.cpu_ms) * 1000 / passed_ms, 1), " %");
  } else {
    out.add("; CPU ", coir::fixed(now.cpu_ms, 3), " s");
  }
  out.add("; refused ", value_of(text, "refused"), ", evicted ", value_of(text, "evicted"), "\n");
}

void add_accounts(coir::Formatter& out, std::string_view text) noexcept {
  out.add(coir::left("account", 16), coir::right("used", 10), coir::right("peak", 10), coir::right("ceiling", 10),
          coir::right("refusals", 10), "\n");
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    constexpr std::string_view kName = "name=";
    const std::size_t end = item.find(" used=");
    if (!item.starts_with(kName) || end == item.npos) continue;
    std::string_view name = item.substr(kName.size(), end - kName.size());
    if (name.starts_with('"')) name = name.substr(1, name.size() - 2);
    item.remove_prefix(end);
    char room[3][24];
    const auto bytes = [&](std::size_t i, std::string_view key) {
      return coir::format(room[i], coir::byte_size(member_of(item, key)));
    };
    const bool has_ceiling = item.find(" ceiling=") != item.npos;
    out.add(coir::left(name, 16), coir::right(bytes(0, " used="), 10), coir::right(bytes(1, " peak="), 10),
            coir::right(has_ceiling ? bytes(2, " ceiling=") : "-", 10), coir::right(member_of(item, " refusals="), 10),
            "\n");
  }
}

std::string_view picture(std::string_view text, const Sample& now, const Sample& before) noexcept {
  static char room[16 * 1024];
  coir::Formatter out(room);
  const std::uint64_t up = number_of(text, "uptime_s");
  out.add("coird ", value_of(text, "version"), " ", value_of(text, "state"),
          value_of(text, "safe_mode") == "true" ? " in safe mode" : "", ", up ");
  if (up >= 86'400) out.add(up / 86'400, " d ");
  out.add(coir::zeros(up / 3600 % 24, 2), ":", coir::zeros(up / 60 % 60, 2), ":", coir::zeros(up % 60, 2), ", process ",
          value_of(text, "pid"), "\n");
  out.add("connections  ", value_of(text, "open"), " of ", value_of(text, "most"), ": ", value_of(text, "idle"),
          " idle, ", value_of(text, "active"), " active, ", value_of(text, "waiting"), " waiting\n");
  add_rates(out, text, now, before);
  out.add("memory       ", coir::byte_size(number_of(text, "resident_bytes")), " resident; fibers ",
          value_of(text, "fibers"), "\n\n");
  add_accounts(out, text);
  return out.text();
}

// draw writes a picture over the one before, as much of it as the terminal shows.
void draw(std::string_view lines) noexcept {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  static char room[24 * 1024];
  coir::Formatter out(room);
  out.add("\x1b[H");
  for (int row = 1; row < size.ws_row && !lines.empty(); ++row) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    out.add(line.substr(0, size.ws_col), "\x1b[K\r\n");
  }
  write_text(out.add("\x1b[J").text());
}

}  // namespace

int show_top(const ControlOptions& options) noexcept {
  static char visible[128 * 1024];
  const bool live = !options.json && ::isatty(STDOUT_FILENO) == 1;
  Asking asking(options);
  for (Sample before;; ::poll(nullptr, 0, kRedrawMs)) {
    std::string_view text;
    if (const int status = asking.ask(options.json ? "top json" : "top text", text); status != kHasDone) return status;
    if (options.json) {
      write_text(text);
    } else {
      text = coir::format(visible, coir::escaped_lines(text));
      const Sample now{coir::monotonic_ns(), number_of(text, "requests"), number_of(text, "cpu_ms")};
      const std::string_view shown = picture(text, now, before);
      live ? draw(shown) : write_text(shown);
      before = now;
    }
    if (!all_written()) return asking.fail(kRefused, "standard output cannot be written");
    if (!live) return kHasDone;
  }
}
