#pragma once

// Edges of a board's pin.
//
//   auto pins = port::Pins::open({});
//   if (!pins) return complain(Error::from_errno(pins.error()));
//   auto pin = pins->take("GP14", {.edges = port::PinEdges::both});
//   if (!pin) return complain(Error::from_errno(pin.error().number));
//   PinWatch button(std::move(*pin));
//   while (auto edge = button.next(deadline)) show(edge->high, edge->lost);

#include <expected>
#include <utility>

#include <coir/deadline.h>
#include <coir/descriptor.h>
#include <coir/error.h>
#include <coir/port/pins.h>

namespace coir {

// PinWatch waits for the edges of a pin that was taken with PinEdges, and owns it. Called the same way from a fiber, a plain
// thread and in a build without fibers. The Pins that gave the pin outlives this.
class PinWatch {
 public:
  explicit PinWatch(port::Pin pin) noexcept : pin_(std::move(pin)) {}
  PinWatch(PinWatch&&) noexcept = default;
  PinWatch& operator=(PinWatch&& other) noexcept {
    std::swap(pin_, other.pin_);
    return *this;
  }
  ~PinWatch();

  // next waits for the next edge. Its member `lost` counts edges that came too fast to be kept. Errors: closed (the chip has
  // vanished: kernels that wake nobody then are asked every second), temporary (sysfs had no level just then), and those of
  // coir::wait.
  [[nodiscard]] std::expected<port::PinEdge, Error> next(Deadline deadline = Deadline::never()) noexcept;

  // poll is next without waiting: `temporary` if no edge is there. A select waits for {fd(), direction()}, as
  // Case::ready(watch.fd(), watch.direction()), after poll has returned that, and loops. Errors: closed, temporary, system.
  [[nodiscard]] std::expected<port::PinEdge, Error> poll() noexcept;
  int fd() const noexcept { return pin_.fd(); }
  Direction direction() const noexcept { return pin_.is_urgent() ? Direction::urgent : Direction::readable; }

  // read returns the level now. Errors: closed, temporary, system.
  [[nodiscard]] std::expected<bool, Error> read() noexcept;

 private:
  port::Pin pin_;
};

}  // namespace coir
