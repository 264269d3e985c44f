#pragma once

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>

#include "until.h"

namespace coir::test {

// Gate is closed until it is opened, once for each passer; for threads that may block.
class Gate {
 public:
  Gate() noexcept { sem_init(&open_, 0, 0); }
  ~Gate() { sem_destroy(&open_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() noexcept { sem_post(&open_); }
  void pass() noexcept {
    while (sem_wait(&open_) != 0) {
    }
  }

 private:
  sem_t open_;
};

inline int count_threads() noexcept {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

// await returns once `word` has the value.
inline void await(const std::atomic<int>& word, int value) noexcept {
  until([&] { return word.load() == value; });
}

}  // namespace coir::test
