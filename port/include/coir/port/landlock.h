#pragma once

// A process gives up changing files outside of a few folders.
//
//   const char* const folders[] = {"/var/lib/sensor", "/dev"};
//   if (keep_writes_to(folders) != 0) show("this kernel restricts no files");

#include <span>

namespace coir::port {

// keep_writes_to denies the calling thread, and each thread and process that it starts from now on, for good: to run a
// program, and outside of `folders` to open a file for writing, to shorten one, and to make a file or a folder. Reading stays
// free, and so do descriptors that are open, pipes and sockets. A folder that does not exist is left out. Call it before
// other threads start. It also gives up gaining privileges by exec. Returns 0, or the errno of a kernel that cannot
// (Linux 5.13 with CONFIG_SECURITY_LANDLOCK can); nothing has changed then.
int keep_writes_to(std::span<const char* const> folders) noexcept;

}  // namespace coir::port
