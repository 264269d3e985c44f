#pragma once

#include <coir/http/client.h>

#include <cstddef>
#include <cstdint>

// FetchOptions is the command line of `coirctl fetch`.
struct FetchOptions {
  static constexpr std::size_t kMostFields = 16;

  const char* url = nullptr;
  const char* output = nullptr;       // null: standard output
  const char* authorities = nullptr;  // a file of certificates
  bool resume = false;
  bool quiet = false;
  std::uint32_t timeout_s = 0;  // 0: none for the whole
  coir::http::RequestField fields[kMostFields];
  std::size_t field_count = 0;

  // read reads the words behind "fetch". False: one line on standard error has told what is wrong.
  bool read(int count, char** words) noexcept;
};

// say_error writes "coirctl: WHAT: WHY" to standard error.
void say_error(std::string_view what, std::string_view why) noexcept;

// refuse says why a word of the command line is wrong, and returns false.
bool refuse(std::string_view word, std::string_view why) noexcept;

// fetch_help is the text of `coirctl fetch --help`.
extern const std::string_view fetch_help;
