#pragma once

#include <string_view>

extern const std::string_view safe_help;

// SafeOptions is the command line of `coirctl safe`.
struct SafeOptions {
  const char* state = "/var/lib/coird";
  enum class Word : unsigned char { ask, on, off } word = Word::ask;

  // read reads the words behind the verb. False: a line on standard error has said what is wrong.
  bool read(int count, char** words) noexcept;
};

// switch_safe_mode has coird's next start be in safe mode, or no longer, and returns the exit status.
int switch_safe_mode(const SafeOptions& options) noexcept;
