#include "board_parts.h"

#include <coir/blocking.h>
#include <coir/deadline.h>
#include <coir/format.h>
#include <errno.h>

#include <algorithm>

#include "complaint.h"

namespace {

constexpr const char* kSeeSysfs = "name a folder such as /sys";

// on_pool runs a call that opens files on the blocking pool, or here if that has no memory: coirctl is answered then, too. A
// caller that is cancelled before that finds nothing done.
template <class F>
void on_pool(F f) noexcept {
  const auto done = coir::blocking_borrowed([&](const coir::BlockingStop&) -> std::expected<void, coir::Error> {
    f();
    return {};
  });
  if (!done && !done.error().ends_waits()) f();
}

}  // namespace

bool take_pin(const Setting& setting, Options& options) noexcept {
  const std::string_view name = setting.text;
  if (name.empty()) return setting.wrong({"a value is missing"});
  if (name.size() > 31 || name.contains(' '))
    return setting.wrong("a number of sysfs works for every pin", {"longer than 31 characters, or with a blank"});
  if (options.pin_count == Options::kMaxPins) return setting.wrong({"more than ", options.kMaxPins});
  options.pins[options.pin_count++] = setting.text;
  return true;
}

std::size_t BoardParts::temperatures(std::span<coir::port::Thermometer> into) noexcept {
  constexpr std::int64_t kKeptNs = 10'000'000'000;
  if (!hardware_.has_thermometers()) return 0;
#if !COIR_NO_ASYNC
  const auto alone = look_.lock();
  if (!alone) return 0;
#endif
  // A look at each scrape of /metrics would be a thread of the pool at each.
  const std::int64_t now = coir::monotonic_ns();
  if (thermometers_read_ns_ == 0 || now - thermometers_read_ns_ >= kKeptNs) {
    // A look that is cancelled before it began leaves the last figures, and the next scrape looks.
    on_pool([this, now] {
      thermometer_count_ = std::min(hardware_.thermometers(thermometers_).value_or(0), kMostThermometers);
      thermometers_read_ns_ = now;
    });
  }
  const std::size_t count = std::min(thermometer_count_, into.size());
  std::copy_n(thermometers_, count, into.begin());
  return count;
}

void BoardParts::write_metrics(coir::http::MetricsText& text) noexcept {
  coir::port::Thermometer found[kMostThermometers];
  const std::size_t count = temperatures(found);
  coir::http::LabelledFigure figures[kMostThermometers];
  for (std::size_t i = 0; i < count; ++i) figures[i] = {found[i].name, found[i].millidegrees};
  if (count != 0)
    coir::http::write_gauges(text, "coir_temperature_celsius", "Temperatures of the board.", "sensor",
                             std::span(figures).first(count));
#if !COIR_NO_ASYNC
  coir::http::write_gauge(text, "coir_pins_on", "Output pins that coird has set to high.", on_.load());
#endif
}

#if COIR_NO_ASYNC

bool BoardParts::open(const Options& options) noexcept {
  auto found = coir::port::Hardware::open(options.sysfs);
  if (!found && (options.sysfs_given || found.error() != ENOENT))
    return options.wrong("sysfs", options.sysfs, kSeeSysfs, {coir::Error::from_errno(found.error())});
  if (found) hardware_ = std::move(*found);
  return true;
}

#else

using coir::port::PinFault;
using coir::port::PinPlace;
using coir::port::PinUse;

namespace {
constexpr const char* kConsumer = "coird";
}  // namespace

bool BoardParts::open(const Options& options) noexcept {
  options_ = &options;
  auto found = coir::port::Hardware::open(options.sysfs);
  if (!found && (options.sysfs_given || found.error() != ENOENT))
    return options.wrong("sysfs", options.sysfs, kSeeSysfs, {coir::Error::from_errno(found.error())});
  if (found) hardware_ = std::move(*found);
  auto pins = coir::port::Pins::open({.sysfs = options.sysfs, .devices = options.sysfs_given ? nullptr : "/dev"});
  if (pins) pins_ = std::move(*pins);
  for (const char* const name : std::span(options.pins).first(options.pin_count)) {
    if (!pins_.find(name))
      return options.wrong("pin", name, "a name of the board, CONTROLLER:LINE, or a number of sysfs",
                           {"this board has no such pin"});
  }
  return true;
}

BoardParts::Fault::Fault(std::string_view name, const PinFault& why) noexcept {
  coir::Formatter out(room);
  out.add("pin ", coir::cut(name, 31), ": ");
  const std::string_view holder = why.holder;
  switch (why.number) {
    case ENOENT:
      out.add("this board has no such pin; name it as the board does, as CONTROLLER:LINE, or by its number in sysfs");
      break;
    case ENODEV:
      out.add("its controller is not there; load its driver, or plug it in again");
      break;
    case EBUSY:
      if (holder == "sysfs") {
        out.add(
            "busy, held by sysfs; stop the program that exported it, then write its number to "
            "/sys/class/gpio/unexport");
      } else if (holder.empty()) {
        out.add("busy, held by another program or driver; end it");
      } else {
        out.add("busy, held by ", holder, "; end that program, or unload that driver");
      }
      break;
    case EMFILE:
      out.add("coird holds ", kMostHeld, " outputs already; restart it to give them back");
      break;
    case EACCES:
    case EPERM:
      out.add("not permitted; let coird's user open /dev/gpiochip* and write below /sys/class/gpio");
      break;
    default:
      out.add(coir::Error::from_errno(why.number));
  }
  size = out.text().size();
}

// held finds the output that was taken as the same line.
BoardParts::Held* BoardParts::held(const PinPlace& place) noexcept {
  for (Held& each : held_) {
    if (!each.pin.is_open()) continue;
    const auto other = pins_.find(each.name);
    const bool same_line =
        !place.controller.empty() && other->controller == place.controller && other->line == place.line;
    const bool same_number = place.number != coir::port::kNoPinNumber && other->number == place.number;
    if (same_line || same_number) return &each;
  }
  return nullptr;
}

void BoardParts::give_back(Held& one) noexcept {
  if (std::exchange(one.high, false)) on_.fetch_sub(1);
  one.pin = {};
}

std::expected<BoardParts::Level, PinFault> BoardParts::read_now(std::string_view name) noexcept {
  const auto place = pins_.find(name);
  if (!place) return std::unexpected(PinFault{.number = place.error()});
  if (Held* const ours = held(*place)) {
    const auto high = ours->pin.read();
    if (high) return Level{.high = *high, .output = true};
    give_back(*ours);
    return std::unexpected(PinFault{.number = high.error()});
  }
  const auto pin = pins_.take(*place, {.consumer = kConsumer});
  if (!pin) return std::unexpected(pin.error());
  const auto high = pin->read();
  if (!high) return std::unexpected(PinFault{.number = high.error()});
  const auto status = pins_.look(*place);
  return Level{.high = *high, .output = status && status->output};
}

std::expected<void, PinFault> BoardParts::write_now(std::string_view name, bool high) noexcept {
  const auto place = pins_.find(name);
  if (!place) return std::unexpected(PinFault{.number = place.error()});
  Held* one = held(*place);
  if (one == nullptr) {
    one = std::ranges::find_if(held_, [](const Held& each) { return !each.pin.is_open(); });
    if (one == std::end(held_)) return std::unexpected(PinFault{.number = EMFILE});
    if (name.size() >= sizeof one->name) return std::unexpected(PinFault{.number = ENOENT});
    auto pin = pins_.take(*place, {.use = PinUse::output, .high = high, .consumer = kConsumer});
    if (!pin) return std::unexpected(pin.error());
    one->pin = std::move(*pin);
    one->name[name.copy(one->name, name.size())] = '\0';
  } else if (const auto written = one->pin.write(high); !written) {
    give_back(*one);
    return std::unexpected(PinFault{.number = written.error()});
  }
  if (std::exchange(one->high, high) != high) high ? on_.fetch_add(1) : on_.fetch_sub(1);
  return {};
}

std::expected<BoardParts::Level, BoardParts::Fault> BoardParts::read_pin(std::string_view name) noexcept {
  std::expected<Level, PinFault> level = std::unexpected(PinFault{.number = ECANCELED});
  if (const auto alone = turn_.lock()) on_pool([&] { level = read_now(name); });
  if (!level) return std::unexpected(Fault(name, level.error()));
  return *level;
}

std::expected<void, BoardParts::Fault> BoardParts::write_pin(std::string_view name, bool high) noexcept {
  std::expected<void, PinFault> written = std::unexpected(PinFault{.number = ECANCELED});
  if (const auto alone = turn_.lock()) on_pool([&] { written = write_now(name, high); });
  if (!written) return std::unexpected(Fault(name, written.error()));
  return {};
}

std::size_t BoardParts::list(std::span<Seen> into) noexcept {
  std::size_t count = 0;
  on_pool([&] {
    const auto add = [&](const PinPlace& place) {
      if (count == into.size()) return;
      const auto status = pins_.look(place);
      into[count++] = {place, status.value_or(coir::port::PinStatus()), status ? 0 : status.error()};
    };
    for (const PinPlace& each : pins_.names()) add(each);
    for (const char* const name : std::span(options_->pins).first(options_->pin_count)) {
      const auto place = pins_.find(name);
      const auto is_name = [&](const PinPlace& each) { return each.name == std::string_view(name); };
      if (place && std::ranges::none_of(pins_.names(), is_name)) add(*place);
    }
  });
  // The level of an output of ours is known.
  if (const auto alone = turn_.lock()) {
    for (Seen& each : into.first(count)) {
      const Held* const ours = held(each.place);
      if (ours != nullptr) each.status.has_level = true, each.status.high = ours->high;
    }
  }
  return count;
}

bool BoardParts::is_named(std::string_view name) const noexcept {
  return std::ranges::any_of(std::span(options_->pins).first(options_->pin_count),
                             [&](const char* each) { return std::string_view(each) == name; });
}

#endif
