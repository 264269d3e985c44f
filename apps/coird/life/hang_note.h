#pragma once

#include <coir/config.h>
#include <coir/end_record.h>

#if !COIR_NO_ASYNC
#include <pthread.h>

#include <cstddef>
#include <string_view>

// HangNote writes to the record of this run (coir/end_record.h) that a watchdog is not fed, or is again, while the thread
// that feeds goes on: a record waits for its disk. No worker may run meanwhile, nor anything that waits for one, so that
// a thread of its own writes; it is there only until all is written. Without memory for one, the caller writes.
class HangNote {
 public:
  HangNote() noexcept = default;
  HangNote(const HangNote&) = delete;
  HangNote& operator=(const HangNote&) = delete;
  ~HangNote() { finish(); }

  // note has the end written; of several that wait the latest. From one thread, with all signals blocked.
  void note(coir::End end, std::string_view text = {}) noexcept;

  // finish waits until all is written. From the same thread, or once that has ended.
  void finish() noexcept;

 private:
  static void* write(void* self) noexcept;

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_t writer_{};
  bool started_ = false;  // the writer is to be joined
  // Under the lock.
  bool writes_ = false;  // the writer looks again for what waits
  bool waits_ = false;
  coir::End end_ = coir::End::none;
  char text_[200];
  std::size_t size_ = 0;
};
#endif
