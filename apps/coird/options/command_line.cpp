// getopt_long: musl has it, it is 2 KB of code, and users get from it what they know of other programs ("--root=DIR",
// "--root DIR", "--", unambiguous abbreviations). Its own messages are off: each of ours is one line that names the
// option.
#include <getopt.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "../complaint.h"
#include "../reporting.h"
#include "config_file.h"
#include "hosts.h"
#include "listen.h"
#include "needs.h"
#include "options.h"
#include "row.h"

namespace {

constexpr std::size_t kMostRows = 96;
constexpr int kFirst = 256;  // what getopt_long returns for the first row

// CommandLine is what getopt_long wants to know of the rows.
struct CommandLine {
  CommandLine() noexcept {
    std::size_t count = 0;
    for (const Row& row : all_rows()) {
      known[count] = {row.name, row.value == nullptr ? no_argument : required_argument, nullptr,
                      kFirst + static_cast<int>(count)};
      ++count;
      if (row.letter == 0) continue;
      *end++ = row.letter;
      if (row.value != nullptr) *end++ = ':';
    }
  }

  // row is the one of what getopt_long returned; null: there is none.
  static const Row* row(int chosen) noexcept {
    const auto rows = all_rows();
    if (chosen >= kFirst && chosen - kFirst < static_cast<int>(rows.size()))
      return &rows[static_cast<std::size_t>(chosen - kFirst)];
    for (const Row& each : rows) {
      if (each.letter != 0 && each.letter == chosen) return &each;
    }
    return nullptr;
  }

  option known[kMostRows + 1] = {};
  char letters[16] = ":";  // the colon asks for ':' where a value is missing
  char* end = letters + 1;
};

// take_first takes, at any place, the file that is read before the command line, and the options that lead to safe mode.
// Errors are reported later, in their order.
void take_first(int count, char** arguments, Options& options) noexcept {
  constexpr std::string_view kFirstOnes[] = {"config", "state", "safe-file"};
  CommandLine line;
  opterr = 0;
  optind = 1;
  for (int chosen; (chosen = getopt_long(count, arguments, line.letters, line.known, nullptr)) != -1;) {
    const Row* const row = CommandLine::row(chosen);
    if (row == nullptr || std::ranges::find(kFirstOnes, row->name) == std::end(kFirstOnes) || *optarg == '\0') continue;
    static_cast<void>(row->take({.row = row, .text = optarg}, options));
  }
}

bool complain_of_memory() noexcept {
  return complain(kSeeHelp, {"the command line: ", coir::Error{coir::ErrorCode::no_memory}});
}

bool take_option(const Row& row, const char* text, Options& options) noexcept {
  const Setting* const setting = options.settings.add({.row = &row, .text = text});
  if (setting == nullptr) return complain_of_memory();
  if (row.take != nullptr) return row.take(*setting, options);
  char cure[64];
  coir::format(cure, "build it with -D", row.part, "=ON", '\0');
  return lacks(row.name, row.part, cure);
}

bool take_next(int chosen, const char* word, char** arguments, Options& options) noexcept {
  if (chosen == ':') {
    if (const Row* row = CommandLine::row(optopt)) return complain(kSeeHelp, {"--", row->name, ": a value is missing"});
    return complain(kSeeHelp, {arguments[optind - 1], ": a value is missing"});
  }
  if (chosen == '?') {
    if (optopt > ' ' && optopt < 127 && strncmp(word, "--", 2) != 0) {
      const char letter = static_cast<char>(optopt);
      return complain(kSeeHelp, {"-", std::string_view(&letter, 1), ": no such option"});
    }
    return complain(kSeeHelp, {arguments[optind - 1], ": no such option, or it takes no value"});
  }
  return take_option(*CommandLine::row(chosen), optarg == nullptr ? "" : optarg, options);
}

// take_all stops at the first option that is wrong, unless safe mode wants the others.
bool take_all(int count, char** arguments, Options& options) noexcept {
  CommandLine line;
  bool good = true;
  optind = 1;
  while (good || options.state_given || options.safe_file != nullptr) {
    const char* const word = arguments[optind];
    const int chosen = getopt_long(count, arguments, line.letters, line.known, nullptr);
    if (chosen == -1) break;
    good &= take_next(chosen, word, arguments, options);
  }
  // Behind an option that is wrong it may be the value.
  if (!good || optind == count) return good;
  return complain(kSeeHelp, {"'", arguments[optind], "': an option is expected here"});
}

bool check_metrics(const Options& options) noexcept {
  if (!options.metrics_apart || !options.no_metrics) return true;
  const Setting* const none = options.settings.last_of(*find_row("no-metrics"));
  if (none->file != nullptr) return none->wrong("leave one of them out", {"conflicts with metrics-listen"});
  return complain(kSeeHelp, {"--no-metrics conflicts with --metrics-listen"});
}

// check_together looks at what only all options tell.
bool check_together(const Options& options) noexcept {
  bool good = check_metrics(options);
  good &= check_needs(options.settings);
  good &= check_certificates(options);
  good &= check_mqtt(options);
  return check_mcp(options) && good;
}

}  // namespace

bool Options::wrong(const char* option, const char* value, const char* cure,
                    std::initializer_list<Word> what) const noexcept {
  const Row* const row = find_row(option);
  const Setting* setting = settings.last_of(*row);
  // An option that was given more than once has several: the one with this value is meant.
  settings.each([&](const Setting& each) {
    if (each.row == row && each.text == value) setting = &each;
  });
  if (setting != nullptr && setting->file != nullptr) return setting->wrong(cure, what);
  char problem[kLineBytes];
  coir::Formatter text(problem);
  for (const Word& word : what) word.add_to(text);
  return complain(cure, {"--", option, " ", value, ": ", text.text()});
}

const Setting* Options::route_key(std::string_view key, std::string_view value) const noexcept {
  const Setting* found = nullptr;
  settings.each([&](const Setting& each) {
    const std::string_view text = each.text;
    if (each.is_route_key() && text.size() == key.size() + 1 + value.size() && text.starts_with(key) &&
        text[key.size()] == '=' && text.ends_with(value))
      found = &each;
  });
  return found;
}

bool parse_options(int count, char** arguments, Options& options, const ConfigCopy* copy) noexcept {
  // The file comes first: of an option that is there once, what the command line says counts.
  take_first(count, arguments, options);
  const bool file_good =
      copy != nullptr ? read_copy(*copy, options) : options.config == nullptr || read_config(options.config, options);
  // Each that finds no room says so.
  static_cast<void>(options.settings.make_room(static_cast<std::size_t>(count), 0));
  // With a copy, it is the second time.
  say_nothing(copy != nullptr);
  const bool line_good = take_all(count, arguments, options);
  say_nothing(false);
  if (options.only_metrics()) options.listen[options.listen_count++].address = *coir::Address::parse("127.0.0.1:8080");
  allow_hosts(options);
  if (copy != nullptr) return file_good;
  // The checks would complain of options that were meant to be given.
  return file_good && line_good && check_together(options);
}
