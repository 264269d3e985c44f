// Without fibers nothing is waited for but by poll(2), and no memory is mapped.
#include <coir/port/probe.h>
#include <sys/eventfd.h>

#include "../linux/probe_runtime.h"

namespace coir::port {

std::size_t probe_runtime(std::span<Feature, kFeatures> features) noexcept {
  features[0] = {"eventfd", opens(::eventfd(0, EFD_CLOEXEC)), "eventfd tells of signals",
                 "needed: coird cannot run without"};
  return 1;
}

}  // namespace coir::port
