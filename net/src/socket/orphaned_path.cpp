#include "socket/orphaned_path.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "socket/kernel.h"

namespace coir {

bool path_is_orphaned(const Address& at, int type) noexcept {
  struct stat info;
  const std::string_view path = at.unix_path();
  if (path.empty() || path[0] == '\0' || ::lstat(path.data(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const int probe = type == SOCK_DGRAM ? kernel::datagram_socket(AF_UNIX) : kernel::stream_socket(AF_UNIX);
  if (probe < 0) return false;
  const bool refused = kernel::connect(probe, at.get(), at.length()) == -ECONNREFUSED;
  ::close(probe);
  return refused;
}

}  // namespace coir
