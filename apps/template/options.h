#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

// Options is the command line.
struct Options {
  enum class Action : unsigned char { serve, help, version, print_budget };

  Action action = Action::serve;
  std::string_view listen, tls_listen;  // addresses, with commas between them
  const char* certificate = "/var/lib/station/station.pem";
  const char* sensor = nullptr;
  std::chrono::milliseconds every{1'000};
  std::size_t memory = SIZE_MAX;  // the most that the program may take; SIZE_MAX: what the machine can spare
};

// parse_options reads the command line. False: one line on standard error has named what is wrong; the exit status is 2.
[[nodiscard]] bool parse_options(int count, char** words, Options& options) noexcept;

// print_help writes all options to standard output.
void print_help() noexcept;
