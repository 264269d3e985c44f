// What a group gives back when memory is short. Declared in proxy/upstream.h.
#include <coir/http/server.h>

#include "proxy/upstream.h"

namespace coir::http {

// give closes connections that rest, of one member after the other.
std::size_t UpstreamGroup::give(void* group, std::size_t wanted) noexcept {
  auto& self = *static_cast<UpstreamGroup*>(group);
  std::size_t given = 0;
  for (UpstreamMember& member : self.members_) {
    while (given < wanted) {
      UpstreamConnection* found;
      {
        const Locked locked(self.lock_);
        found = self.take_resting(member);
      }
      if (found == nullptr) break;
      destroy(*found, true);
      given += sizeof(UpstreamConnection) + kKernelBytesPerConnection;
    }
  }
  return given;
}

}  // namespace coir::http
