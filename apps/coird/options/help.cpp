#include <coir/format.h>
#include <coir/port/probe.h>

#include <span>
#include <string_view>

#include "../complaint.h"
#include "lines.h"
#include "options.h"
#include "row.h"

namespace {

constexpr std::size_t kColumn = 30, kHelpWidth = 104;  // where help begins, and ends
constexpr std::string_view kBlanks = "                              ";

constexpr char kUsage[] =
    "usage: coird [--config FILE] [--listen ADDRESS]... [--tls-listen ADDRESS]... [--root DIR] [OPTION]...\n"
    "\n"
    "coird serves files, /healthz and /metrics over HTTP/1.1, with TLS or without. The file of --config may hold any\n"
    "option except the last group, as a key of its section: [listen], listen = :80.\n";

constexpr char kEnd[] =
    "\n"
    "Environment: COIR_WORKERS (threads that run fibers), COIR_STACK_KB (8, 16, 32 or 64).\n"
    "\n"
    "Signals: SIGTERM and SIGINT let the requests in progress end, and coird exits with status 0. A second\n"
    "one ends it at once. SIGHUP reads the file of --config again, and the files of certificates,\n"
    "credentials and routes; if one is invalid, the old configuration stays. If the machine has new\n"
    "addresses, coird's own certificate is issued again with the same key. SIGQUIT writes every fiber with\n"
    "its backtrace to standard error, and coird continues (in a build with fibers).\n"
    "\n"
    "Exit status: 0 done, 1 cannot run or connections cut off, 2 a wrong option or a missing file.\n";

// print_text_of prints the help of an option, from column `at` on.
void print_text_of(const Row& row, std::size_t at) noexcept {
  if (at + 1 > kColumn) {
    print_text("\n");
    at = 0;
  }
  print_text(kBlanks.substr(0, kColumn - at));
  print_lines(row.help, kHelpWidth - kColumn, kBlanks);
}

void print_row(const Row& row) noexcept {
  char head[96];
  coir::Formatter text(head);
  if (row.letter != 0) {
    text.add("  -", std::string_view(&row.letter, 1), ", --", row.name);
  } else {
    text.add("      --", row.name);
  }
  if (row.value != nullptr) text.add(" ", row.value);
  print_text(text.text());
  print_text_of(row, text.text().size());
}

}  // namespace

void print_help() noexcept {
  print_text(kUsage);
  for (std::size_t i = 0; i < kSections; ++i) {
    const auto section = static_cast<Section>(i);
    bool first = true;
    for (const Row& row : all_rows()) {
      if (row.section != section || row.help == nullptr) continue;
      if (first) {
        const SectionText& text = section_text(section);
        print({"\n", text.title, text.name == nullptr ? ":" : ", [", text.name == nullptr ? "" : text.name,
               text.name == nullptr ? "" : "]:"});
      }
      first = false;
      print_row(row);
    }
  }
  print_text(kEnd);
}

int print_probe() noexcept {
  coir::port::Feature features[coir::port::kFeatures];
  const std::size_t count = coir::port::probe(features);
  for (const auto& feature : std::span(features).first(count)) {
    char line[kLineBytes];
    print_text(coir::format(line, coir::left(feature.name, 15), " ", coir::left(feature.present ? "yes" : "no", 4), " ",
                            feature.used(), "\n"));
  }
  return printed();
}
