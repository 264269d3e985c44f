// A process of root gives up capabilities, each time in a child.

#include <CppUTest/TestHarness.h>
#include <coir/port/capabilities.h>
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/folder.h"

namespace capabilities_test {

using coir::port::capability;
using coir::port::keep_capabilities;

namespace {

// permitted are the capabilities of this thread, of the first 32.
std::uint32_t permitted() noexcept {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, halves) == 0 ? halves[0].permitted | halves[0].effective : UINT32_MAX;
}

int keeps_one() noexcept {
  const std::uint32_t before = permitted();
  if (keep_capabilities(capability(CAP_NET_BIND_SERVICE)) != 0) return 1;
  return permitted() == (before & capability(CAP_NET_BIND_SERVICE)) ? 0 : 2;
}

int limits_programs() noexcept {
  const bool may = geteuid() == 0 && (permitted() & capability(CAP_SETPCAP)) != 0;
  if (keep_capabilities(capability(CAP_KILL)) != 0) return 1;
  if (!may) return 0;
  for (const int each : {CAP_CHOWN, CAP_SYS_ADMIN, CAP_SYS_MODULE}) {
    if (prctl(PR_CAPBSET_READ, each, 0, 0, 0) != 0) return 2;
  }
  // Nor can it take one back.
  return keep_capabilities(~std::uint64_t{0}) == 0 && (permitted() & ~capability(CAP_KILL)) == 0 ? 0 : 3;
}

}  // namespace

TEST_GROUP(Capabilities) {};

TEST(Capabilities, those_that_are_named_are_kept) {
  LONGS_EQUAL(0, coir::test::in_child([] { return keeps_one(); }).status);
}

TEST(Capabilities, programs_get_no_others) {
  LONGS_EQUAL(0, coir::test::in_child([] { return limits_programs(); }).status);
}

TEST(Capabilities, root_without_them_gives_no_file_away) {
  coir::test::Folder folder;
  const auto end = coir::test::in_child([&] {
    if (keep_capabilities(0) != 0) return 1;
    return chown(folder.path(), geteuid() + 1, getegid()) == -1 && errno == EPERM ? 0 : 2;
  });
  LONGS_EQUAL(0, end.status);
}

}  // namespace capabilities_test
