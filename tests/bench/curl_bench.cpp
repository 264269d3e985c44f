// The peer of client_bench: libcurl's multi interface, 64 transfers at a time on one thread. The library is loaded by its
// name, as only its headers would need another package.
//
//   curl_bench URL SECONDS

#include <dlfcn.h>

#include "measure.h"

namespace {

// From curl.h and multi.h, whose numbers are part of the library's interface.
constexpr int kUrl = 10002, kWriteFunction = 20011, kMaxConnects = 6, kDone = 1;
struct Message {
  int message;
  void* easy;
  union {
    void* whatever;
    int result;
  } data;
};

std::size_t drop(char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

template <class Function>
Function* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) std::exit(3);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  void* const library = dlopen("libcurl.so.4", RTLD_NOW);
  if (library == nullptr) return 3;
  auto* const easy_init = find<void*()>(library, "curl_easy_init");
  auto* const easy_setopt = find<int(void*, int, ...)>(library, "curl_easy_setopt");
  auto* const multi_init = find<void*()>(library, "curl_multi_init");
  auto* const multi_setopt = find<int(void*, int, ...)>(library, "curl_multi_setopt");
  auto* const multi_add = find<int(void*, void*)>(library, "curl_multi_add_handle");
  auto* const multi_remove = find<int(void*, void*)>(library, "curl_multi_remove_handle");
  auto* const multi_perform = find<int(void*, int*)>(library, "curl_multi_perform");
  auto* const multi_poll = find<int(void*, void*, unsigned, int, int*)>(library, "curl_multi_poll");
  auto* const info_read = find<Message*(void*, int*)>(library, "curl_multi_info_read");
  find<int(long)>(library, "curl_global_init")(3);

  void* const multi = multi_init();
  multi_setopt(multi, kMaxConnects, 64L);
  for (int i = 0; i < 64; ++i) {
    void* const easy = easy_init();
    easy_setopt(easy, kUrl, words[1]);
    easy_setopt(easy, kWriteFunction, &drop);
    multi_add(multi, easy);
  }
  const std::int64_t begin = bench::wall_ns();
  const std::int64_t end = begin + std::atoi(words[2]) * 1'000'000'000LL;
  long done = 0;
  while (bench::wall_ns() < end) {
    int running, left;
    multi_perform(multi, &running);
    while (Message* const message = info_read(multi, &left)) {
      if (message->message != kDone) continue;
      if (message->data.result == 0) ++done;
      void* const easy = message->easy;
      multi_remove(multi, easy);
      multi_add(multi, easy);
    }
    multi_poll(multi, nullptr, 0, 100, nullptr);
  }
  std::printf("requests_per_s: %.0f /s\n",
              static_cast<double>(done) * 1e9 / static_cast<double>(bench::wall_ns() - begin));
}
