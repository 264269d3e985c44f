#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

// require ends a fuzz target with one line when a promise is broken.
#define require(promise)                                                            \
  do {                                                                              \
    if (!(promise)) {                                                               \
      fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #promise); \
      abort();                                                                      \
    }                                                                               \
  } while (false)

// begins and ends compare without string_view's members, which need a function of libc++'s runtime library.
inline bool begins(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && memcmp(text.data(), with.data(), with.size()) == 0;
}
inline bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && memcmp(text.data() + text.size() - with.size(), with.data(), with.size()) == 0;
}

// Exact is a copy of bytes in a block of just their size, or such a block to write to, so that a sanitizer sees the first byte read or written
// behind them.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : data_(static_cast<char*>(malloc(bytes.size()))), size_(bytes.size()) {
    if (size_ != 0) memcpy(data_, bytes.data(), size_);
  }
  explicit Exact(std::size_t size) : data_(static_cast<char*>(malloc(size))), size_(size) {}
  ~Exact() { free(data_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_;
  std::size_t size_;
};

// Source hands out the bytes of an input: some as numbers that steer the target, the rest as what is fed to it.
class Source {
 public:
  Source(const unsigned char* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};
