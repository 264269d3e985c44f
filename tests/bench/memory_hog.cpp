// Takes memory and keeps it, as the userland of a stock image would.
//
//   memory_hog MEGABYTES
//
// Says "holding" on standard output when every page is there, and touches each once a second from then on.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const std::size_t bytes = argc == 2 ? std::strtoul(argv[1], nullptr, 10) << 20 : 0;
  if (bytes == 0) {
    std::fputs("usage: memory_hog MEGABYTES\n", stderr);
    return 2;
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("memory_hog");
    return 1;
  }
  // Volatile, so that no write is left out for want of a reader.
  auto* const pages = static_cast<volatile unsigned char*>(memory);
  for (unsigned char round = 1;; ++round) {
    for (std::size_t at = 0; at < bytes; at += 4096) pages[at] = round;
    if (round == 1) {
      std::puts("holding");
      std::fflush(stdout);
    }
    sleep(1);
  }
}
