#pragma once

#include <string_view>

extern const std::string_view control_help;

// is_control_verb tells whether a verb is one that is for a running coird.
bool is_control_verb(std::string_view verb) noexcept;

// ControlOptions is the command line of these verbs.
struct ControlOptions {
  std::string_view verb;
  std::string_view pin, use;  // of pins: its name, and read, on or off
  const char* socket = nullptr;
  const char* output = nullptr;  // of trace; null: standard output
  bool json = false;
  bool follow = false;              // of log
  std::string_view level = "info";  // of log
  int timeout_s = 0;                // 0: the verb's own

  // read reads the words behind the verb. False: a line on standard error has said what is wrong.
  bool read(std::string_view verb, int count, char** words) noexcept;
};

// control asks coird, prints its answer and returns the exit status, as systemctl's.
int control(const ControlOptions& options) noexcept;

// These are its verbs that do more than to print one answer: log -f, top, trace and check.
int follow_log(const ControlOptions& options) noexcept;
int show_top(const ControlOptions& options) noexcept;
int save_trace(const ControlOptions& options) noexcept;
int check_configuration(const ControlOptions& options) noexcept;
