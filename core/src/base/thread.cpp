#include "base/thread.h"

#include <initializer_list>

namespace coir {

constinit SharedAtomic<unsigned> unseen_threads{0};

int start_thread(pthread_t& thread, std::size_t stack_bytes, const sigset_t& blocked, void* (*body)(void*),
                 void* argument) noexcept {
  // A thread begins with the mask of the one that starts it.
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, body, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

sigset_t all_but_faults() noexcept {
  sigset_t most;
  sigfillset(&most);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&most, fault);
  return most;
}

}  // namespace coir
