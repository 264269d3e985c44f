#include <coir/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "../complaint.h"
#include "lines.h"
#include "options.h"
#include "row.h"

namespace {

constexpr std::size_t kCommentWidth = 100;

constexpr char kRouteExample[] =
    "; A section [route PREFIX] forwards requests below PREFIX. Its keys are url and those of --routes, or "
    "fastcgi,\n"
    "; try, buffer, first-byte and max-body. It may appear more than once.\n"
    ";[route /api]\n"
    ";url = http://10.0.0.2:8081,http://10.0.0.3:8081\n"
    ";health = /healthz\n"
    ";[route .php]\n"
    ";fastcgi = unix:/run/php-fpm.sock\n";

// print_row prints an option's help, and its settings; without one it is a comment.
void print_setting(const Row& row, const Options& options) noexcept {
  print_text("; ");
  print_lines(row.help, kCommentWidth, "; ");
  if (row.kind == Kind::number) print({"; A number from ", row.least, " to ", row.most, "."});
  bool given = false;
  options.settings.each([&](const Setting& each) {
    if (each.row != &row) return;
    given = true;
    print({row.name, " = ", row.kind == Kind::flag && *each.text == '\0' ? "yes" : each.text});
  });
  if (!given) print({";", row.name, " = ", row.kind == Kind::flag ? "no" : row.value});
}

void print_route(const Options::Proxied& route) noexcept {
  print({"\n[route ", route.prefix, "]"});
  for (const Setting& key : route.keys) {
    const std::string_view text = key.text;
    const std::size_t equals = std::min(text.find('='), text.size());
    print({text.substr(0, equals), " = ", equals == text.size() ? "yes" : text.substr(equals + 1)});
  }
}

}  // namespace

void print_lines(std::string_view text, std::size_t width, std::string_view margin) noexcept {
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest;
    if (line.size() > width) line = line.substr(0, line.rfind(' ', width));
    print_text(line);
    print_text("\n");
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!rest.empty()) print_text(margin);
  }
}

void print_config(const Options& options) noexcept {
  print_text("; Options of coird, for --config. A line that begins with ; or # is a comment.\n");
  for (std::size_t i = 0; i < kSections; ++i) {
    const auto section = static_cast<Section>(i);
    const SectionText& text = section_text(section);
    bool first = true;
    for (const Row& row : all_rows()) {
      if (text.name == nullptr || row.section != section || row.help == nullptr) continue;
      if (std::exchange(first, false)) print({"\n; ", text.title, "\n[", text.name, "]"});
      print_setting(row, options);
    }
    if (section == Section::gateway && !first) print_text(kRouteExample);
  }
  for (const auto& route : std::span(options.proxied).first(options.proxied_count)) {
    if (!route.keys.empty()) print_route(route);
  }
  for (const auto& script : std::span(options.applications).first(options.application_count)) {
    if (!script.keys.empty()) print_route(script);
  }
}
