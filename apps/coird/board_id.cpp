#include "board_id.h"

#include <coir/file.h>
#include <coir/format.h>
#include <coir/sum.h>
#include <net/if.h>

#include "in_folder.h"

namespace {

// sum_of_id writes the sum of the number in a file. Empty: there is none, or it is 0, as that of a chip whose fuses are blank or
// the MAC of the loopback.
[[gnu::noinline]] std::string_view sum_of_id(const char* path, std::span<char> room) noexcept {
  char text[128];
  const auto id = coir::slurp(path, text);
  if (!id || id->find_first_not_of("UID:0_ \n") == id->npos) return {};
  return coir::format(room, coir::hex(coir::sum_of(*id), 8));
}

}  // namespace

std::string_view board_id(const char* sysfs, std::span<char> room) noexcept {
  if (const auto chip = sum_of_id(InFolder(sysfs, "class/cvi-base/base_uid").text, room); !chip.empty()) return chip;
  if (const auto machine = sum_of_id("/etc/machine-id", room); !machine.empty()) return machine;
  constexpr unsigned kMostInterfaces = 16;
  for (unsigned i = 1; i <= kMostInterfaces; ++i) {
    char name[IF_NAMESIZE], file[64];
    if (::if_indextoname(i, name) == nullptr) continue;
    static_cast<void>(coir::format(file, "class/net/", name, "/address", '\0'));
    if (const auto mac = sum_of_id(InFolder(sysfs, file).text, room); !mac.empty()) return mac;
  }
  return {};
}
