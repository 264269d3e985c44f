#include "trace_file.h"

#include <coir/file.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "options/options.h"

bool open_trace(const Options& options, int& fd) noexcept {
  fd = -1;
  if (options.trace == nullptr) return true;
  coir::UnsharedFile file = coir::open_unshared(options.trace, O_WRONLY, 0644);
  if (file.error == 0 && ::ftruncate(file.fd, 0) != 0) file.error = errno;
  fd = file.fd;
  return file.error == 0 ||
         options.wrong("trace", options.trace, "name a file that coird can write, in a folder that exists",
                       {coir::Error::from_errno(file.error)});
}
