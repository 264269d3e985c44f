#include "pin_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sysfs.h"

namespace coir::port {

using sysfs::Descriptor;

namespace {

constexpr std::string_view kChip = "gpiochip";
constexpr std::uint32_t kMostChips = 64;

// text_of is a text of the kernel, which has a NUL unless it fills its room.
template <std::size_t kSize>
std::string_view text_of(const char (&room)[kSize]) noexcept {
  return {room, strnlen(room, kSize)};
}

std::uint64_t flags_of(const PinWish& wish) noexcept {
  switch (wish.edges) {
    case PinEdges::rising:
      return GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING;
    case PinEdges::falling:
      return GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_FALLING;
    case PinEdges::both:
      return GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING;
    case PinEdges::none:
      break;
  }
  // Without a flag a line keeps its direction.
  return wish.use == PinUse::input    ? GPIO_V2_LINE_FLAG_INPUT
         : wish.use == PinUse::output ? GPIO_V2_LINE_FLAG_OUTPUT
                                      : 0;
}

}  // namespace

// match_chip opens a chip by its file's name if it is `controller`'s: a descriptor or -errno, ENODEV for another's.
int Pins::match_chip(std::string_view name, std::string_view controller) const noexcept {
  const sysfs::Path file(name);
  Descriptor chip(::openat(devices_, file.text(), O_RDWR | O_CLOEXEC));
  if (chip.get() < 0) return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
  gpiochip_info info{};
  if (::ioctl(chip.get(), GPIO_GET_CHIPINFO_IOCTL, &info) != 0) return -errno;
  if (text_of(info.label) == controller || text_of(info.name) == controller) return chip.release();
  if (root_ < 0) return -ENODEV;
  // A text of the device tree ends with a NUL.
  const sysfs::Content bank = sysfs::read_file(root_, sysfs::Path("bus/gpio/devices/", name, "/of_node/bank-name"));
  if (bank.error != 0 || std::string_view(bank.bytes, strnlen(bank.bytes, bank.size)) != controller) return -ENODEV;
  return chip.release();
}

// open_chip returns the chip of a pin's controller, or -errno: ENODEV, there is none. A chip that may not be opened is
// worth telling only if no other one matches.
int Pins::open_chip(const PinPlace& place) const noexcept {
  if (devices_ < 0 || place.controller.empty()) return -ENODEV;
  int found = -ENODEV;
  for (std::uint32_t i = 0; i < kMostChips; ++i) {
    char name[kChip.size() + 10];
    const sysfs::Digits digits(i);
    const std::size_t size = kChip.copy(name, kChip.size());
    const int chip = match_chip({name, size + digits.text().copy(name + size, digits.size)}, place.controller);
    if (chip >= 0) return chip;
    if (chip != -ENODEV) found = chip;
  }
  return found;
}

// Not inlined: the request takes 600 bytes of the stack.
[[gnu::noinline]] std::expected<Pin, PinFault> Pins::take_line(int chip, const PinPlace& place,
                                                               const PinWish& wish) const noexcept {
  gpio_v2_line_request request{};
  request.offsets[0] = place.line;
  request.num_lines = 1;
  request.event_buffer_size = wish.kept_edges;
  sysfs::put_name(request.consumer, wish.consumer);
  request.config.flags = flags_of(wish);
  if ((request.config.flags & GPIO_V2_LINE_FLAG_OUTPUT) != 0) {
    request.config.num_attrs = 1;
    request.config.attrs[0].mask = 1;
    request.config.attrs[0].attr.id = GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES;
    request.config.attrs[0].attr.values = wish.high ? 1 : 0;
  }
  if (::ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) != 0) {
    PinFault fault{.number = errno};
    PinStatus status;
    if (fault.number == EBUSY && look_at_line(chip, place.line, status) == 0)
      sysfs::put_name(fault.holder, status.holder);
    return std::unexpected(fault);
  }
  Pin pin;
  pin.fd_ = request.fd;
  pin.edges_ = wish.edges;
  // Edges are read until there are none.
  if (::fcntl(pin.fd_, F_SETFL, O_RDONLY | O_NONBLOCK) != 0) return std::unexpected(PinFault{.number = errno});
  return pin;
}

[[gnu::noinline]] int look_at_line(int chip, std::uint32_t line, PinStatus& status) noexcept {
  gpio_v2_line_info info{};
  info.offset = line;
  if (::ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) != 0) return errno;
  status.by_device = status.has_direction = true;
  status.held = (info.flags & GPIO_V2_LINE_FLAG_USED) != 0;
  status.output = (info.flags & GPIO_V2_LINE_FLAG_OUTPUT) != 0;
  sysfs::put_name(status.holder, text_of(info.consumer));
  return 0;
}

int read_line(int fd) noexcept {
  gpio_v2_line_values values{.bits = 0, .mask = 1};
  return ::ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) != 0 ? -errno : static_cast<int>(values.bits & 1);
}

int write_line(int fd, bool high) noexcept {
  gpio_v2_line_values values{.bits = high ? 1u : 0u, .mask = 1};
  return ::ioctl(fd, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) != 0 ? errno : 0;
}

int read_edge(int fd, std::uint32_t& seen, PinEdge& edge) noexcept {
  gpio_v2_line_event event;
  const ssize_t got = ::read(fd, &event, sizeof event);
  if (got < 0) return errno;
  if (got != sizeof event) return EIO;
  edge = {.high = event.id == GPIO_V2_LINE_EVENT_RISING_EDGE,
          .ns = static_cast<std::int64_t>(event.timestamp_ns),
          .lost = event.line_seqno - seen - 1};
  seen = event.line_seqno;
  return 0;
}

}  // namespace coir::port
