#include "crashes.h"

#include <coir/end_record.h>
#include <coir/error.h>
#include <coir/format.h>

#include "exit_status.h"
#include "fetch_options.h"
#include "output.h"

using coir::End;
using coir::EndRecord;
using coir::PastEnd;

const std::string_view crashes_help =
    "usage: coirctl crashes [OPTION]...\n"
    "\n"
    "Shows how the last runs of coird ended, the newest first: the last five that did not end clean, with\n"
    "the signal, the fiber, the calls and the last lines of the log. It reads the folder of coird's --state,\n"
    "whether coird runs or not. scripts/explain of coir's source tells the lines of the calls.\n"
    "\n"
    "      --state DIR   the folder (default: /var/lib/coird)\n"
    "      --all         clean ends and failed starts, too, as far as they are still there\n"
    "      --json        one JSON object, whose member \"schema\" is 1\n"
    "\n"
    "The exit status: 0, there is a record, with crashes or without; 2, the command line; 10, no record can\n"
    "be read there.\n";

namespace {

// Larger than any line of a record, with each byte escaped.
char g_line[EndRecord::kSlotBytes * 6 + 64];

template <class... Parts>
void print(const Parts&... parts) noexcept {
  write_text(coir::format(g_line, parts...));
}

// visible writes a text for a terminal: control bytes are escaped.
std::string_view visible(std::string_view text) noexcept {
  static constinit char room[EndRecord::kSlotBytes * 4];
  return coir::format(room, coir::escaped(text));
}

// next_line takes a line "key: value" off `lines`.
bool next_line(std::string_view& lines, std::string_view& key, std::string_view& value) noexcept {
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, size);
    lines.remove_prefix(std::min(size + 1, lines.size()));
    const std::size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    key = line.substr(0, colon);
    value = line.substr(colon + 2);
    return true;
  }
  return false;
}

bool is_shown(const PastEnd& record, const CrashesOptions& options) noexcept {
  if (record.end == End::none) return false;
  return options.all || (record.end != End::clean && record.end != End::failed);
}

void print_text(const PastEnd& record) noexcept {
  print("run ", record.number, ": ", coir::end_name(record.end));
  if (const auto text = record.value("text"); !text.empty()) print(": ", visible(text));
  print("\n");
  std::string_view key, value;
  for (std::string_view lines : {record.head, record.tail}) {
    while (next_line(lines, key, value)) {
      if (key == "number" || key == "end" || key == "text" || key.starts_with("ends_")) continue;
      print("  ", key, ": ", visible(value), "\n");
    }
  }
}

// print_all_of prints the values of a key that may come more than once as a member of JSON.
void print_all_of(std::string_view key, std::string_view member, const PastEnd& record) noexcept {
  print(",\"", member, "\":[");
  std::string_view lines = record.tail, value;
  for (bool first = true; PastEnd::next_of(key, lines, value); first = false)
    print(first ? "" : ",", coir::json_quoted(value));
  print("]");
}

void print_json(const PastEnd& record, bool first) noexcept {
  print(first ? "" : ",", "{\"kind\":\"", coir::end_name(record.end), "\"");
  std::string_view key, value;
  for (std::string_view lines : {record.head, record.tail}) {
    while (next_line(lines, key, value)) {
      if (key == "end" || key == "call" || key == "log" || key.starts_with("ends_")) continue;
      print(",", coir::json_quoted(key), ":", coir::json_quoted(value));
    }
  }
  print_all_of("call", "calls", record);
  print_all_of("log", "log", record);
  print("}");
}

}  // namespace

bool CrashesOptions::read(int count, char** words) noexcept {
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--all") {
      all = true;
    } else if (word == "--state") {
      if (i + 1 == count) return refuse(word, "a value is missing");
      state = words[++i];
    } else {
      return refuse(word, "no such option (coirctl crashes --help tells)");
    }
  }
  return true;
}

int show_crashes(const CrashesOptions& options) noexcept {
  coir::PastEnds ends;
  if (auto opened = ends.open(options.state); !opened) {
    char why[160];
    const bool none = opened.error() == coir::ErrorCode::not_found;
    say_error(options.state, none ? "there is no record of crashes; coird keeps one in the folder of --state DIR"
                                  : coir::format(why, "crashes: ", opened.error()));
    return kFile;
  }
  static constinit char room[EndRecord::kSlotBytes];
  PastEnd record;
  std::size_t shown = 0, kept = 0;
  if (options.json) print("{\"schema\":1,\"ends\":[");
  while (ends.read(room, record)) {
    const bool unclean = record.end != End::clean && record.end != End::failed && record.end != End::none;
    if (!is_shown(record, options) || (unclean && kept++ == EndRecord::kKept)) continue;
    options.json ? print_json(record, shown == 0) : print_text(record);
    ++shown;
  }
  if (options.json) print("],\"damaged\":", ends.damaged(), "}\n");
  if (!options.json && shown == 0) print("no crash is recorded\n");
  if (ends.damaged() != 0 && !options.json) {
    char why[80];
    say_error(options.state, coir::format(why, "damaged records are left out: ", ends.damaged()));
  }
  if (all_written()) return kDone;
  say_error("standard output", "it cannot be written");
  return kFile;
}
