#pragma once

#include <coir/config.h>

#include <cstdint>
#include <string_view>

#include "options/options.h"

#if COIR_MDNS && !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

// Announced is the ports that multicast DNS announces: the first without TLS and the first with TLS that others can reach.
struct Announced {
  std::uint16_t http = 0, https = 0;

  // take looks at a listener, by its address as text.
  void take(std::string_view address, std::uint16_t port, bool tls) noexcept;
};

#if COIR_MDNS && !COIR_NO_ASYNC
[[nodiscard]] bool take_mdns(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_mdns = nullptr;
#endif

// Announcing has a fiber answer for the name of --mdns, if that was given, until it is destroyed: then it says goodbye.
// A line tells of each name that was taken.
class Announcing {
 public:
  Announcing(const Options& options, const Announced& ports) noexcept;
  ~Announcing();
  // leave has it say goodbye already; it does not wait for that.
  void leave() const noexcept;
  Announcing(const Announcing&) = delete;
  Announcing& operator=(const Announcing&) = delete;

#if COIR_MDNS && !COIR_NO_ASYNC
 private:
  void answer() const noexcept;

  const char* name_;
  Announced ports_;
  coir::Fiber fiber_;
#endif
};
