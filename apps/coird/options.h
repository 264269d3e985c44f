#pragma once

#include <coir/http/server.h>
#include <coir/net/address.h>

#include <chrono>
#include <cstddef>

// Options is what the command line of coird says.
struct Options {
  enum class Action : unsigned char { serve, help, version, probe };

  Action action = Action::serve;
  coir::Address listen[coir::http::Server::kMaxListeners];
  std::size_t listen_count = 0;
  const char* root = nullptr;
  bool connections_given = false;
  std::chrono::milliseconds drain_timeout{30'000};
  coir::http::ServerOptions server;
};

// parse_options reads the command line. False: one line on standard error has named the option that is wrong; the exit
// status is 2.
[[nodiscard]] bool parse_options(int count, char** arguments, Options& options) noexcept;

// print_help writes the complete list of options to standard output.
void print_help() noexcept;
