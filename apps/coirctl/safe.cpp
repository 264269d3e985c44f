#include "safe.h"

#include <coir/error.h>
#include <coir/file.h>
#include <coir/format.h>
#include <unistd.h>

#include "exit_status.h"
#include "fetch_options.h"

const std::string_view safe_help =
    "usage: coirctl safe [on|off] [--state DIR]\n"
    "\n"
    "Has coird's next start be in safe mode, or no longer, by files in the folder of its --state; off also forgets\n"
    "a crash loop. Restart coird afterwards. Without a word it prints which of them the next start finds.\n"
    "\n"
    "      --state DIR   the folder (default: /var/lib/coird)\n"
    "\n"
    "The exit status: 0; 2, the command line; 10, the folder cannot be changed.\n";

bool SafeOptions::read(int count, char** words) noexcept {
  for (int i = 0; i < count; ++i) {
    const std::string_view each = words[i];
    if (each == "on" || each == "off") {
      word = each == "on" ? Word::on : Word::off;
    } else if (each == "--state") {
      if (i + 1 == count) return refuse(each, "a value is missing");
      state = words[++i];
    } else {
      return refuse(each, "there are on, off and --state (coirctl safe --help tells)");
    }
  }
  return true;
}

int switch_safe_mode(const SafeOptions& options) noexcept {
  char asked[256], starts[256];
  if (!coir::Formatter(asked).add(options.state, "/safe", '\0').fits() ||
      !coir::Formatter(starts).add(options.state, "/starts", '\0').fits())
    return refuse(options.state, "the name is too long"), kCommand;
  if (options.word == SafeOptions::Word::ask) {
    const std::string_view text = ::access(asked, F_OK) == 0 ? "on\n" : "off\n";
    return ::write(STDOUT_FILENO, text.data(), text.size()) < 0 ? kFile : kDone;
  }
  std::expected<void, coir::Error> done;
  if (options.word == SafeOptions::Word::on) {
    done = coir::replace_file(asked, {}, 0600);  // that it is there counts, not what it holds
  } else {
    for (const char* each : {asked, starts}) {
      if (done) done = coir::remove_file(each);
      if (!done && done.error() == coir::ErrorCode::not_found) done = {};
    }
  }
  if (done) return kDone;
  say_error(options.state, describe(done.error()));
  return kFile;
}
