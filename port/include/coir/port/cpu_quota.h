#pragma once

// The number of CPUs that the control groups of the process allow.
//
//   const unsigned cpus = coir::port::cpu_quota();
//   if (cpus != 0) show("limited to", cpus);

namespace coir::port {

// cpu_quota is how many CPUs' time the control groups of this process let it use, rounded up; 0 if they set no limit. It
// reads cpu.max (version 2) and cpu.cfs_quota_us (version 1) of the process's group and of those around it, below
// /sys/fs/cgroup, and takes the least. `root` is put before every path: a folder that looks like "/". Any thread; some
// tens of system calls. Stack: 2 KB.
unsigned cpu_quota(const char* root = "") noexcept;

}  // namespace coir::port
