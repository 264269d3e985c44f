#pragma once

#include <string_view>

extern const std::string_view crashes_help;

// CrashesOptions is the command line of `coirctl crashes`.
struct CrashesOptions {
  const char* state = "/var/lib/coird";
  bool json = false;
  bool all = false;  // clean ends and failed starts, too

  // read reads the words behind the verb. False: a line on standard error has said what is wrong.
  bool read(int count, char** words) noexcept;
};

// show_crashes prints how the last runs of coird ended, the newest first, and returns the exit status.
int show_crashes(const CrashesOptions& options) noexcept;
