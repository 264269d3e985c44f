#pragma once

#include <coir/http.h>

#include <chrono>
#include <optional>

// Options is the command line: how the station serves, and what it measures.
struct Options {
  coir::http::ServeOptions serve = {.name = "station", .certificate = "/var/lib/station/station.pem"};
  const char* sensor = nullptr;  // the sensor's file; null: readings are made up
  std::chrono::milliseconds every{1'000};
};

// parse_options reads the command line. It returns the exit status if there is nothing to serve: 0 after --help and
// --version, 2 after one line on standard error that names a wrong option.
[[nodiscard]] std::optional<int> parse_options(int count, char** words, Options& options) noexcept;
