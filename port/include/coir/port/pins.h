#pragma once

// A board's pins for input and output, by the names that are printed on it.
//
//   auto pins = Pins::open({});
//   if (!pins) return complain(pins.error());
//   auto led = pins->take("LED", {.use = PinUse::output, .high = true});
//   if (!led) return complain(led.error().number);           // EBUSY: led.error().holder has the line
//   auto button = pins->take("GP14", {.edges = PinEdges::both});
//   while (const auto edge = button->next_edge()) show(edge->high, edge->lost);
//
// coir/pin_watch.h waits for edges on a fiber.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::port {

enum class PinUse : std::uint8_t { as_is, input, output };
enum class PinEdges : std::uint8_t { none, rising, falling, both };

inline constexpr std::uint32_t kNoPinNumber = UINT32_MAX;

// PinPlace is where a pin is found: a line of a controller, for the character device, and a global number, for sysfs.
// Either may be missing. The texts belong to the board's table, or to the name that was asked for.
struct PinPlace {
  std::string_view name;
  std::string_view controller;  // a chip's label, its name "gpiochipN", or the "bank-name" in its device tree
  std::uint32_t line = 0;
  std::uint32_t number = kNoPinNumber;
};

// board_pins is the table of the build's board: port/boards/NAME/pins.txt. A build for no board has none.
std::span<const PinPlace> board_pins() noexcept;

// PinWish says how a pin is taken. As an output it has its level from the start, without another one in between. Edges
// make it an input.
struct PinWish {
  PinUse use = PinUse::as_is;
  bool high = false;
  PinEdges edges = PinEdges::none;
  const char* consumer = "coir";  // other programs are shown this name
  std::uint32_t kept_edges = 0;   // that the kernel keeps until they are read; 0: its own number, 16
};

// PinFault is an errno and, if it is EBUSY and the kernel tells, the name under which another holds the line: a program's
// or driver's own, or "sysfs" for a line that was exported there.
struct PinFault {
  int number = 0;
  char holder[32] = {};
};

// PinEdge is a change of a level. `lost` counts those between the previous one that was returned and this one that nobody
// can read any more: all of them by the character device, whose edges have sequence numbers; by sysfs, at least so many.
struct PinEdge {
  bool high = false;
  std::int64_t ns = 0;  // of CLOCK_MONOTONIC; when it was read, by sysfs
  std::uint32_t lost = 0;
};

// PinStatus is what can be seen of a pin without taking it.
struct PinStatus {
  bool by_device = false;      // the character device's; else sysfs's
  bool held = false;           // by `holder`, as in PinFault
  bool has_direction = false;  // `output` is known
  bool output = false;
  bool has_level = false;  // `high` is known: of a line that sysfs shows
  bool high = false;
  char holder[32] = {};
};

class Pins;

// Pin is a line that was taken, and is given back by the destructor. An output of the character device keeps its level only as
// long as it is held; most controllers keep it after that, too. One user at a time. No call waits. Errors are an errno: ENODEV,
// the chip has vanished (an LED's module was removed, a USB device was unplugged).
class Pin {
 public:
  Pin() noexcept = default;
  Pin(Pin&& other) noexcept { *this = std::move(other); }
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();

  bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] std::expected<bool, int> read() const noexcept;
  // write sets an output. Also EPERM: the pin is an input.
  [[nodiscard]] std::expected<void, int> write(bool high) noexcept;

  // next_edge returns the next edge, or EAGAIN: then wait for fd(), for POLLPRI if is_urgent, else for POLLIN, and call again.
  [[nodiscard]] std::expected<PinEdge, int> next_edge() noexcept;
  int fd() const noexcept { return fd_; }
  bool is_urgent() const noexcept { return number_ != kNoPinNumber; }
  // release_fd hands the descriptor out to a caller that closes it itself: coir::close_fd does that for a fiber's. The
  // pin is given back.
  int release_fd() noexcept;

 private:
  friend class Pins;

  int fd_ = -1;    // the line's, or that of sysfs' value
  int root_ = -1;  // of sysfs; Pins'
  std::uint32_t number_ = kNoPinNumber;
  std::uint32_t seen_ = 0;  // the number of the latest edge
  PinEdges edges_ = PinEdges::none;
  bool high_ = false;      // by sysfs: the level that was read last
  bool exported_ = false;  // by this
};

// Pins finds a board's pins by name and takes them. The kernel offers a pin by the character device /dev/gpiochipN (its
// version 2, since Linux 5.10) or by files below class/gpio in sysfs. The device is asked first, for it tells who holds a
// line and counts edges; sysfs serves pins whose controller no chip has, by their number. A line that is exported in sysfs
// is busy for the device; by sysfs it is shared with whoever exported it.
//
// Each call finds the chips anew, as modules are loaded late and unplugged devices come again. Calls open files and take a
// few system calls: a fiber makes them on the blocking pool (coir/blocking.h). Any thread; the Pins outlives what it gave. Stack:
// 2 KB.
class Pins {
 public:
  // Places says where the files are. Null `devices`: sysfs alone, such as a folder that looks like it.
  struct Places {
    const char* sysfs = "/sys";
    const char* devices = "/dev";
    std::span<const PinPlace> board = board_pins();
  };

  constexpr Pins() noexcept = default;
  Pins(Pins&& other) noexcept { *this = std::move(other); }
  Pins& operator=(Pins&& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(devices_, other.devices_);
    std::swap(board_, other.board_);
    return *this;
  }
  ~Pins();

  // open fails with an errno if neither folder is there.
  [[nodiscard]] static std::expected<Pins, int> open(const Places& places) noexcept;

  // names are the board's.
  std::span<const PinPlace> names() const noexcept { return board_; }

  // find takes a name of the board, "CONTROLLER:LINE", or a global number of sysfs such as "440". Errors: ENOENT.
  [[nodiscard]] std::expected<PinPlace, int> find(std::string_view name) const noexcept;

  // take has the line until the Pin is destroyed. Errors: ENOENT (no such name), ENODEV (its controller is not there: its
  // driver is not loaded, or it has vanished), EBUSY, EINVAL (the controller has fewer lines), EACCES, and the driver's own.
  [[nodiscard]] std::expected<Pin, PinFault> take(const PinPlace& place, const PinWish& wish) const noexcept;
  [[nodiscard]] std::expected<Pin, PinFault> take(std::string_view name, const PinWish& wish) const noexcept;

  // look leaves the line alone. Errors: as take, without EBUSY.
  [[nodiscard]] std::expected<PinStatus, int> look(const PinPlace& place) const noexcept;

 private:
  int open_chip(const PinPlace& place) const noexcept;
  int match_chip(std::string_view name, std::string_view controller) const noexcept;
  std::expected<Pin, PinFault> take_line(int chip, const PinPlace& place, const PinWish& wish) const noexcept;
  std::expected<Pin, PinFault> take_files(const PinPlace& place, const PinWish& wish) const noexcept;
  int show_files(std::uint32_t number, bool& exported) const noexcept;

  int root_ = -1;     // of sysfs
  int devices_ = -1;  // /dev
  std::span<const PinPlace> board_;
};

}  // namespace coir::port
