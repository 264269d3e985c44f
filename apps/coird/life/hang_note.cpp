#include "hang_note.h"

#if !COIR_NO_ASYNC

#include <coir/stack_size.h>
#include <limits.h>

#include <algorithm>
#include <span>
#include <utility>

namespace {

constexpr std::size_t kStackBytes = std::size_t{32} * 1024;

// start starts a thread with that stack. Returns 0, or an errno.
int start(pthread_t& thread, void* (*body)(void*) noexcept, void* argument) noexcept {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  pthread_attr_setstacksize(&attributes, std::max<std::size_t>(kStackBytes * coir::kStackInflation, PTHREAD_STACK_MIN));
  const int error = pthread_create(&thread, &attributes, body, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

void HangNote::note(coir::End end, std::string_view text) noexcept {
  pthread_mutex_lock(&lock_);
  end_ = end;
  size_ = std::min(text.size(), sizeof text_);
  std::ranges::copy(text.substr(0, size_), text_);
  waits_ = true;
  const bool seen = std::exchange(writes_, true);
  pthread_mutex_unlock(&lock_);
  if (seen) return;
  finish();  // one that has written all ends at once
  started_ = start(writer_, write, this) == 0;
  if (!started_) write(this);
}

void HangNote::finish() noexcept {
  if (std::exchange(started_, false)) pthread_join(writer_, nullptr);
}

void* HangNote::write(void* self) noexcept {
  auto& note = *static_cast<HangNote*>(self);
  for (;;) {
    pthread_mutex_lock(&note.lock_);
    note.writes_ = std::exchange(note.waits_, false);
    const coir::End end = note.end_;
    char text[sizeof text_];
    const std::size_t size = note.size_;
    std::ranges::copy(std::span(note.text_).first(size), text);
    const bool writes = note.writes_;
    pthread_mutex_unlock(&note.lock_);
    if (!writes) return nullptr;
    coir::EndRecord::note(end, {text, size});
  }
}

#endif
