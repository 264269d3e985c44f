#include <charconv>
#include <string>

// std::to_string of integers. That of floating-point numbers is printf's, with its 9 KB of stack: there is none.

namespace {

template <class T>
std::string decimal(T value) {
  char digits[24];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace

std::string std::to_string(int value) {
  return decimal(value);
}
std::string std::to_string(unsigned value) {
  return decimal(value);
}
std::string std::to_string(long value) {
  return decimal(value);
}
std::string std::to_string(unsigned long value) {
  return decimal(value);
}
std::string std::to_string(long long value) {
  return decimal(value);
}
std::string std::to_string(unsigned long long value) {
  return decimal(value);
}
