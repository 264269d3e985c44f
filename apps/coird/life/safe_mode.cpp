#include "safe_mode.h"

#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#endif
#include <coir/crash.h>
#include <coir/end_record.h>
#include <coir/file.h>
#include <coir/port/memory.h>
#include <coir/stack_size.h>
#include <coir/sum.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "../complaint.h"
#include "../in_folder.h"
#include "../state.h"
#include "../state_file.h"

using coir::operator""_KiB;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostKept = 64 * 1024;

bool is_there(const char* path) noexcept {
  return ::access(path, F_OK) == 0;
}

[[gnu::noinline]] bool is_in(const char* folder, const char* name) noexcept {
  return is_there(InFolder(folder, name).text);
}

std::uint64_t since_boot_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

// sum_of_file adds a file's bytes to a sum; one that cannot be read adds none.
std::uint32_t sum_of_file(const char* path, std::uint32_t sum) noexcept {
  const auto file = path != nullptr ? coir::File::open(path) : std::unexpected(coir::Error{});
  if (!file) return sum;
  const auto bytes = file->read_all(coir::account::http, kMostKept);
  return bytes ? coir::sum_of(bytes->bytes(), sum) : sum;
}

std::uint32_t sum_of_all(const Options& options, std::span<char*> arguments) noexcept {
  const auto build = coir::build_id();
  std::uint32_t sum = coir::sum_of({reinterpret_cast<const char*>(build.data()), build.size()});
  for (const char* each : arguments.subspan(1)) sum = coir::sum_of({each, strlen(each) + 1}, sum);
  return sum ^ options.config_sum;
}

std::uint32_t this_boot() noexcept {
  char id[64];
  const auto text = coir::slurp(coir::EndRecordOptions().boot_id, id);
  return text ? coir::sum_of(*text) : 0;
}

// ended_early tells whether a run has recorded an end of its own within a minute, such as a crash or a hang.
bool ended_early(const coir::PastEnd& run) noexcept {
  const std::string_view uptime = run.value("uptime_ms");
  std::uint64_t ms = 0;
  const bool told = std::from_chars(uptime.data(), uptime.data() + uptime.size(), ms).ec == std::errc{};
  return told && run.end != coir::End::clean && ms < kShortMs;
}

// may_bind tells whether safe mode listens there. The user that coird becomes may have written `copied` addresses, and
// coird is still root: it makes and removes no file at a path of that user's choice. A certificate may be what is
// wrong.
bool may_bind(const Options::Listen& at, bool copied) noexcept {
  const bool from_file = at.setting != nullptr && at.setting->file != nullptr;
  return !at.tls && !(copied && from_file && at.address.family() == coir::Address::Family::unix_path);
}

// has_address tells whether a copy names an address where safe mode listens, not for metrics alone.
bool has_address(const Options& copy) noexcept {
  return std::ranges::any_of(std::span(copy.listen).first(copy.listen_count), [](const Options::Listen& each) {
    return each.setting != nullptr && !each.metrics && may_bind(each, true);
  });
}

// look_at_record tells whether another coird has the folder, and whether the last one has failed early.
bool look_at_record(const char* folder, bool& failed) noexcept {
  coir::PastEnds ends;
  coir::PastEnd last;
  if (!ends.open(folder)) return false;
  // A room of its own, whose pages go again.
  constexpr std::size_t kBytes = coir::EndRecord::kSlotBytes;
  void* const room = coir::port::reserve(kBytes);
  if (room == nullptr) return false;
  failed = ends.read(std::span<char, kBytes>(static_cast<char*>(room), kBytes), last) && ended_early(last);
  coir::port::release(room, kBytes);
  return ends.running();
}

// pause says why, and waits. False: a signal that asks coird to stop has ended it.
bool pause(std::uint64_t runs, std::uint64_t seconds) noexcept {
  sigset_t stops, before;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTERM);
  ::sigaddset(&stops, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &stops, &before) != 0) return true;
  warn({runs, " runs in a row ended within a minute: waiting for ", seconds, " s"});
  const std::uint64_t end = since_boot_ms() + seconds * 1000;
  int got = -1;
  for (std::uint64_t now; got < 0 && (now = since_boot_ms()) < end;) {
    const timespec rest{.tv_sec = static_cast<time_t>((end - now) / 1000),
                        .tv_nsec = static_cast<long>((end - now) % 1000) * 1'000'000};
    got = ::sigtimedwait(&stops, nullptr, &rest);
    if (got < 0 && errno != EINTR) break;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return got < 0;
}

}  // namespace

bool SafeMode::begin(const Options& options, bool good, std::span<char*> arguments) noexcept {
  options_ = &options;
  bool failed = false, runs = false;
  if (options.state_given) make_state_folder(options, good), runs = look_at_record(options.state, failed);
  // A mistake in a shell beside the coird that runs.
  if (runs && !good) return true;
  if (options.safe_file != nullptr && is_there(options.safe_file)) return reason_ = Reason::file, true;
  if (!options.state_given) return true;
  if (is_in(options.state, "safe")) return reason_ = Reason::asked, true;
  if (runs) return true;
  remove_leftovers(options.state);
  config_ = sum_of_file(options.config, coir::kEmptySum);
  now_ = {.began_ms = since_boot_ms(), .boot = this_boot(), .of = sum_of_all(options, arguments)};
  count_runs(failed);
  if (runs_ >= kLoop) reason_ = Reason::loop;
  if (const std::uint64_t seconds = pause_after(runs_); seconds != 0) {
    if (!pause(runs_, seconds)) return false;
    now_.began_ms = since_boot_ms();
  }
  now_.count = runs_ + 1;
  counts_ = true;
  keep(now_);
  return true;
}

// count_runs reads how many short runs came before this one; `failed`: the last has recorded that it failed early.
[[gnu::noinline]] void SafeMode::count_runs(bool failed) noexcept {
  char room[192];
  Starts kept;
  const auto text = read_state(InFolder(options_->state, "starts").text, room);
  if (text && read_starts(*text, kept)) runs_ = short_runs(kept, now_, failed);
}

void SafeMode::keep(const Starts& starts) const noexcept {
  char room[192];
  const InFolder path(options_->state, "starts");
  const std::string_view text = write_starts(starts, room);
  auto written = write_state(path.text, text);
  // A full disk may be why the runs are short.
  if (!written && written.error().is_disk_full()) written = rewrite_state(path.text, text);
  if (!written) tell_unkept(path.text, written.error());
}

bool SafeMode::read_good(std::span<char*> arguments, Options& good) const noexcept {
  if (!options_->state_given) return false;
  const InFolder path(options_->state, "good.conf");
  const auto file = open_state(path.text);
  if (!file && file.error() == coir::ErrorCode::not_found) return false;
  const auto bytes =
      file ? file->read_all(coir::account::http, kMostKept + coir::kSumLineBytes + 1) : std::unexpected(file.error());
  const auto text = bytes ? coir::whole_text(bytes->text()) : std::nullopt;
  if (!text) return warn({path.text, ": damaged, and left out"}), false;
  const ConfigCopy copy{.path = path.text, .text = *text};
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), good, &copy);
}

std::string_view SafeMode::why(std::span<char> room) const noexcept {
  if (reason_ == Reason::file) return "the file of --safe-file is there";
  if (reason_ == Reason::asked) return "coirctl safe asked for it";
  return coir::format(room, runs_, " runs in a row ended within a minute");
}

const char* SafeMode::how() const noexcept {
  if (reason_ == Reason::file) return "remove that file and restart coird";
  if (reason_ == Reason::asked) return "coirctl safe off, with coird's --state, and restart coird";
  return "change the configuration or run coirctl safe off, with coird's --state, and restart coird";
}

std::string_view SafeMode::page(std::span<char> room) const noexcept {
  char reason[64];
  return coir::format(room, "coird is in safe mode: ", why(reason),
                      ".\nIt serves /healthz, /metrics and this page alone, with default limits.\nTo leave it: ", how(),
                      ".\ncoirctl crashes tells how the last runs ended.\n");
}

void SafeMode::apply(Options& options, const Options* good) noexcept {
  char reason[64];
  warn({"safe mode: ", why(reason), "; to leave it: ", how()});
  options.safe = true;
  const bool copied = good != nullptr && has_address(*good);
  const Options& from = copied ? *good : options;
  // Without a password nobody sees more than that coird is in safe mode.
  const bool hidden = options.no_metrics || options.credentials != nullptr ||
                      (good != nullptr && (good->no_metrics || good->credentials != nullptr));
  std::size_t count = 0;
  for (const Options::Listen& each : std::span(from.listen).first(from.listen_count)) {
    if (each.setting != nullptr && may_bind(each, copied)) options.listen[count++] = each;
  }
  // The last resort, if no other one can be bound.
  if (count < std::size(options.listen)) options.listen[count++] = {.address = *coir::Address::parse("127.0.0.1:8080")};
  options.listen_count = count;
  options.metrics_apart = from.metrics_apart;
  options.no_metrics = hidden && !from.metrics_apart;
  options.root = options.credentials = options.routes = options.mqtt = options.mdns = options.trace = nullptr;
  options.writable = nullptr;
  options.proxied_count = options.application_count = options.cache_rule_count = options.error_page_count = 0;
  options.mcp = {};
  options.dashboard = options.dashboard_token_file = options.control_readers = nullptr;
  options.log_file = options.syslog = nullptr;
  options.pin_count = 0;
  options.memory = SIZE_MAX;
  options.account_count = 0;
  options.reserve = 0;
  options.reserve_given = options.connections_given = options.active_given = false;
  const Options defaults;
  options.sysfs = defaults.sysfs;
  options.sysfs_given = false;
  options.drain_timeout = defaults.drain_timeout;
  options.backlog = defaults.backlog;
  const auto hosts = from.server.allow_hosts;
  options.server = defaults.server;
  options.server.allow_hosts = hosts;
}

// keep_good copies the file of --config, if it is still what this run has begun with.
void SafeMode::keep_good() const noexcept {
  if (on() || !counts_ || options_->config == nullptr) return;
  const auto file = coir::File::open(options_->config);
  if (!file) return;
  const auto bytes = file->read_all(coir::account::http, kMostKept);
  const InFolder good(options_->state, "good.conf");
  if (!bytes || coir::sum_of(bytes->bytes()) != config_) return;
  char line[coir::kSumLineBytes];
  // The line of the sum is one of its own.
  const auto content = bytes->bytes();
  const std::string_view end = content.empty() || content.back() == '\n' ? "" : "\n";
  const auto whole = coir::sum_of(end, config_);
  const auto kept = sum_of_file(good.text, coir::kEmptySum);
  if (kept == coir::sum_of(coir::sum_line(whole, line), whole)) return;
  if (const auto written = write_state(good.text, content, {}, end); !written) tell_unkept(good.text, written.error());
}

// forget has no later start count this run, or those before it. The file stays: a disk that is full then takes no new one.
void SafeMode::forget() const noexcept {
  keep({.of = now_.of});
}

void SafeMode::serving() noexcept {
#if !COIR_NO_ASYNC
  if (on() || !counts_) return;
  minute_ = coir::spawn({.name = "safe mode", .stack = 16_KiB}, [this] {
    const auto minute_passes = [this] {
      const auto stopped = stops_.wait(coir::Deadline::after(60s));
      return !stopped && stopped.error() == coir::ErrorCode::timed_out;
    };
    if (!minute_passes()) return;
    keep_good();
    // Its end may be one with the machine's, whose next boot knows no time of it.
    forget();
#if COIR_TLS
    while (options_->any_tls() && !date_state(options_->state) && minute_passes()) {
    }
#endif
  });
#endif
}

void SafeMode::stopped() noexcept {
#if !COIR_NO_ASYNC
  // A second signal cancels what waits. This is short, and a later start counts on it.
  const coir::Shield shield(coir::Deadline::after(10s));
  stops_.set();
  if (minute_.started()) static_cast<void>(minute_.join());
#endif
  keep_good();
  if (!counts_) return;
  if (!on()) {
    forget();
  } else if (is_in(options_->state, "starts")) {
    // Not removed by coirctl safe off: safe mode stays until the next boot, and its next start does not wait.
    keep({.count = kLoop + 1, .began_ms = now_.began_ms - kShortMs, .boot = now_.boot, .of = now_.of});
  }
}
