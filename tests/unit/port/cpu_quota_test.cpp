// Limits of control groups, on a folder that looks like "/".

#include <coir/port/cpu_quota.h>

#include <CppUTest/TestHarness.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/folder.h"

namespace cpu_quota_test {

TEST_GROUP(CpuQuota) {
  coir::test::Folder root;

  void put(const char* path, const char* text) {
    char script[512];
    snprintf(script, sizeof script, "cd '%s' && mkdir -p $(dirname '%s') && printf '%%s\\n' '%s' >'%s'", root.path(),
             path, text, path);
    CHECK_EQUAL(0, system(script));
  }
  unsigned quota() { return coir::port::cpu_quota(root.path()); }
};

TEST(CpuQuota, is_none_where_nobody_tells) {
  UNSIGNED_LONGS_EQUAL(0, quota());
  put("proc/self/cgroup", "0::/");
  UNSIGNED_LONGS_EQUAL(0, quota());
  put("sys/fs/cgroup/cpu.max", "max 100000");
  UNSIGNED_LONGS_EQUAL(0, quota());
  put("sys/fs/cgroup/cpu.max", "nonsense");
  UNSIGNED_LONGS_EQUAL(0, quota());
  put("proc/self/cgroup", "nonsense\n\n:\n::");
  UNSIGNED_LONGS_EQUAL(0, quota());
}

TEST(CpuQuota, of_version_2_is_the_least_of_the_group_and_those_around_it_rounded_up) {
  put("proc/self/cgroup", "0::/outer/inner");
  put("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000");
  UNSIGNED_LONGS_EQUAL(2, quota());
  put("sys/fs/cgroup/outer/inner/cpu.max", "max 100000");
  put("sys/fs/cgroup/outer/cpu.max", "800000 100000");
  put("sys/fs/cgroup/cpu.max", "300000 100000");
  UNSIGNED_LONGS_EQUAL(3, quota());
  put("sys/fs/cgroup/outer/cpu.max", "1000 100000");
  UNSIGNED_LONGS_EQUAL(1, quota());
}

TEST(CpuQuota, of_version_1_is_read_where_cpu_is_mounted_also_in_a_container) {
  put("proc/self/cgroup", "12:cpuset:/elsewhere\n4:cpuacct,cpu:/docker/0123\n0::/");
  put("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "100000");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  UNSIGNED_LONGS_EQUAL(0, quota());
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000");
  UNSIGNED_LONGS_EQUAL(4, quota());
  put("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "50000");
  put("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "50001");
  UNSIGNED_LONGS_EQUAL(2, quota());
}

}  // namespace cpu_quota_test
