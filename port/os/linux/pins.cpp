// Pins and their names, and the pins of sysfs. pin_lines.cpp has those of the character device.

#include <coir/port/pins.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "board_pins.h"
#include "pin_lines.h"
#include "sysfs.h"

namespace coir::port {

using sysfs::Content;
using sysfs::Descriptor;
using sysfs::Digits;
using sysfs::parse;
using sysfs::Path;
using sysfs::read_file;
using sysfs::write_file;

namespace {

constexpr const char* kEdgeNames[] = {"none", "rising", "falling", "both"};

Path file_of(std::uint32_t number, std::string_view name) noexcept {
  return Path("class/gpio/gpio", number, name);
}

std::unexpected<PinFault> fault(int error) noexcept {
  return std::unexpected(PinFault{.number = error});
}

// read_level returns a level or -errno. A regular file, as in a folder that looks like sysfs, may have grown anew.
int read_level(int fd) noexcept {
  Content content;
  sysfs::read_text(fd, content);
  unsigned value = 0;
  const int error = parse(content, value);
  return error != 0 ? -error : value != 0;
}

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::span<const PinPlace> board_pins() noexcept {
  return std::span(board::kPins).first(std::size(board::kPins) - 1);
}

std::expected<Pins, int> Pins::open(const Places& places) noexcept {
  Pins pins;
  pins.root_ = ::open(places.sysfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int error = errno;
  if (places.devices != nullptr) pins.devices_ = ::open(places.devices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (pins.root_ < 0 && pins.devices_ < 0) return std::unexpected(error);
  pins.board_ = places.board;
  return pins;
}

Pins::~Pins() {
  if (root_ >= 0) ::close(root_);
  if (devices_ >= 0) ::close(devices_);
}

std::expected<PinPlace, int> Pins::find(std::string_view name) const noexcept {
  for (const PinPlace& each : board_) {
    if (each.name == name) return each;
  }
  PinPlace place{.name = name};
  if (parse(name, place.number) == 0 && place.number != kNoPinNumber) return place;
  place.number = kNoPinNumber;
  const std::size_t colon = name.rfind(':');
  if (colon == name.npos || colon == 0 || parse(name.substr(colon + 1), place.line) != 0)
    return std::unexpected(ENOENT);
  place.controller = name.substr(0, colon);
  return place;
}

std::expected<Pin, PinFault> Pins::take(std::string_view name, const PinWish& wish) const noexcept {
  const auto place = find(name);
  if (!place) return fault(place.error());
  return take(*place, wish);
}

std::expected<Pin, PinFault> Pins::take(const PinPlace& place, const PinWish& wish) const noexcept {
  const Descriptor chip(open_chip(place));
  if (chip.get() >= 0) return take_line(chip.get(), place, wish);
  if (chip.get() == -ENODEV && place.number != kNoPinNumber && root_ >= 0) return take_files(place, wish);
  return fault(-chip.get());
}

std::expected<PinStatus, int> Pins::look(const PinPlace& place) const noexcept {
  PinStatus status;
  const Descriptor chip(open_chip(place));
  if (chip.get() >= 0) {
    if (const int error = look_at_line(chip.get(), place.line, status); error != 0) return std::unexpected(error);
  } else if (chip.get() != -ENODEV || place.number == kNoPinNumber || root_ < 0) {
    return std::unexpected(-chip.get());
  }
  // A line that is exported shows its level to everybody.
  if (place.number == kNoPinNumber || root_ < 0) return status;
  unsigned value = 0;
  if (parse(read_file(root_, file_of(place.number, "/value")), value) != 0) return status;
  const Content direction = read_file(root_, file_of(place.number, "/direction"));
  status.has_level = status.held = true;
  status.high = value != 0;
  if (status.by_device) return status;
  status.has_direction = direction.error == 0;
  status.output = direction.text() != "in";
  sysfs::put_name(status.holder, "sysfs");
  return status;
}

// show_files has the kernel show a pin's files. It returns 0 or an errno, ENODEV if no chip has that number.
int Pins::show_files(std::uint32_t number, bool& exported) const noexcept {
  if (const Descriptor there(sysfs::open_file(root_, file_of(number, "/value"), false)); there.get() != -ENOENT)
    return there.get() < 0 ? -there.get() : 0;
  const int error = write_file(root_, Path("class/gpio/export"), Digits(number).text());
  exported = error == 0;
  // EINVAL is the kernel's word for a number that no chip has, and ENOENT that of a kernel without sysfs for pins.
  return error == EINVAL || error == ENOENT ? ENODEV : error;
}

std::expected<Pin, PinFault> Pins::take_files(const PinPlace& place, const PinWish& wish) const noexcept {
  Pin pin;
  pin.root_ = root_;
  pin.number_ = place.number;
  if (const int error = show_files(place.number, pin.exported_); error != 0) return fault(error);
  int error = 0;
  const PinUse use = wish.edges != PinEdges::none ? PinUse::input : wish.use;
  if (use != PinUse::as_is) {
    const Content direction = read_file(root_, file_of(place.number, "/direction"));
    // "out" alone would be low first. A pin whose direction is fixed has no such file.
    error = direction.error == ENOENT ? 0 : direction.error;
    if (direction.error == 0 && (direction.text() == "in") != (use == PinUse::input))
      error = write_file(root_, file_of(place.number, "/direction"),
                         use == PinUse::input ? "in"
                         : wish.high          ? "high"
                                              : "low");
    if (error == 0 && use == PinUse::output)
      error = write_file(root_, file_of(place.number, "/value"), wish.high ? "1" : "0");
  }
  if (error == 0 && wish.edges != PinEdges::none)
    error = write_file(root_, file_of(place.number, "/edge"), kEdgeNames[std::to_underlying(wish.edges)]);
  if (error != 0) return fault(error);
  pin.fd_ = sysfs::open_file(root_, file_of(place.number, "/value"), false);
  if (pin.fd_ < 0) return fault(-std::exchange(pin.fd_, -1));
  pin.edges_ = wish.edges;
  // A change before the first read is no edge.
  const int level = read_level(pin.fd_);
  if (level < 0) return fault(-level);
  pin.high_ = level != 0;
  return pin;
}

Pin& Pin::operator=(Pin&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(root_, other.root_);
  std::swap(number_, other.number_);
  std::swap(seen_, other.seen_);
  std::swap(edges_, other.edges_);
  std::swap(high_, other.high_);
  std::swap(exported_, other.exported_);
  return *this;
}

Pin::~Pin() {
  if (const int fd = release_fd(); fd >= 0) ::close(fd);
}

int Pin::release_fd() noexcept {
  if (is_urgent() && edges_ != PinEdges::none) static_cast<void>(write_file(root_, file_of(number_, "/edge"), "none"));
  if (exported_) static_cast<void>(write_file(root_, Path("class/gpio/unexport"), Digits(number_).text()));
  exported_ = false;
  edges_ = PinEdges::none;
  return std::exchange(fd_, -1);
}

std::expected<bool, int> Pin::read() const noexcept {
  if (is_urgent()) {
    // Opened anew: a read of fd_ would take the news of an edge from those that wait for it.
    unsigned value = 0;
    const int error = parse(read_file(root_, file_of(number_, "/value")), value);
    if (error != 0) return std::unexpected(error == ENOENT ? ENODEV : error);
    return value != 0;
  }
  const int level = read_line(fd_);
  if (level < 0) return std::unexpected(-level);
  return level != 0;
}

std::expected<void, int> Pin::write(bool high) noexcept {
  const int error =
      is_urgent() ? write_file(root_, file_of(number_, "/value"), high ? "1" : "0") : write_line(fd_, high);
  if (error != 0) return std::unexpected(error);
  return {};
}

std::expected<PinEdge, int> Pin::next_edge() noexcept {
  if (!is_urgent()) {
    PinEdge edge;
    if (const int error = read_edge(fd_, seen_, edge); error != 0) return std::unexpected(error);
    return edge;
  }
  // sysfs tells that there were edges, not how many. Both of a pulse leave the level that was there.
  pollfd news{.fd = fd_, .events = POLLPRI, .revents = 0};
  if (::poll(&news, 1, 0) < 0) return std::unexpected(errno);
  if ((news.revents & POLLPRI) == 0) return std::unexpected(EAGAIN);
  const int level = read_level(fd_);
  if (level < 0) return std::unexpected(-level);
  const bool high = edges_ == PinEdges::both ? level != 0 : edges_ == PinEdges::rising;
  const bool same = edges_ == PinEdges::both && high == high_;
  high_ = high;
  return PinEdge{.high = high, .ns = now_ns(), .lost = same ? 1u : 0u};
}

}  // namespace coir::port
