#include "explored_context.h"

#include <asm/prctl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coir/port/context.h>

// The linker gives the name without this to the explored code; see platform.cpp.
extern "C" int __real_pthread_create(pthread_t* handle, const pthread_attr_t*, void* (*body)(void*), void* argument);

namespace coir::explore {

namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;
constexpr std::size_t kSleepersBytes = std::size_t{16} << 10;  // of the stack, what the kernel's thread sleeps on

sem_t g_made;

// variables_bytes is the size of the executable's thread-local variables, which end where the thread pointer points to.
std::size_t variables_bytes() noexcept {
  static std::size_t bytes = 0;
  if (bytes == 0) {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
          for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type != PT_TLS) continue;
            bytes = part.p_memsz + (-part.p_memsz - part.p_vaddr) % part.p_align;
          }
          return 1;  // the executable is the first
        },
        nullptr);
  }
  return bytes;
}

char* thread_pointer() noexcept {
  char* pointer;
  asm volatile("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

}  // namespace

// Nothing between the system call and the switch uses a thread-local variable.
[[gnu::noinline]] void switch_to(ExploredContext& from, ExploredContext& to) noexcept {
  syscall(SYS_arch_prctl, ARCH_SET_FS, to.thread_pointer_);
  port::coir_switch(&from.sp_, to.sp_, nullptr);
}

void ExploredContext::make(void (*body)(void*) noexcept, void* argument) noexcept {
  body_ = body;
  argument_ = argument;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sem_init(&g_made, 0, 0);
  pthread_t handle;
  if (__real_pthread_create(&handle, &attributes, sleep_for_good, this) != 0) abort();
  pthread_attr_destroy(&attributes);
  sem_wait(&g_made);
}

void* ExploredContext::sleep_for_good(void* given) noexcept {
  auto& self = *static_cast<ExploredContext*>(given);
  self.be_this_thread();
  self.first_variables_ = static_cast<char*>(malloc(variables_bytes()));
  if (self.first_variables_ == nullptr) abort();
  memcpy(self.first_variables_, self.thread_pointer_ - variables_bytes(), variables_bytes());
  self.sp_ = port::make_context(static_cast<char*>(__builtin_frame_address(0)) - kSleepersBytes, begin, &self);
  sem_post(&g_made);
  for (;;) pause();
}

void ExploredContext::begin(void*, void* given) noexcept {
  auto& self = *static_cast<ExploredContext*>(given);
  self.body_(self.argument_);
}

void ExploredContext::be_this_thread() noexcept {
  thread_pointer_ = thread_pointer();
}

void ExploredContext::renew_variables() noexcept {
  memcpy(thread_pointer_ - variables_bytes(), first_variables_, variables_bytes());
}

}  // namespace coir::explore
