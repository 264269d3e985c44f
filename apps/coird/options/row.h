#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "setting.h"

struct Options;

// Section is a part of --help, of the file of --config and of coird.conf.
enum class Section : unsigned char { listen, files, gateway, mcp, mqtt, auth, tls, limits, timeouts, process, action };
inline constexpr std::size_t kSections = 11;

// SectionText is what a section is called: in the file, and in --help with a sentence.
struct SectionText {
  const char* name;  // null: its options are for the command line alone
  const char* title;
};
const SectionText& section_text(Section section) noexcept;

// Kind says what an option's text is.
enum class Kind : unsigned char {
  flag,      // yes or no; on the command line its name alone is yes
  number,    // a number from `least` to `most`, with K, M or G behind it
  duration,  // above 0
  duration_or_zero,
  file,  // the name of a file or a folder, never empty
  text,
};

// Row is one option of coird: the command line, --help, the file of --config, --print-config and coird.conf are made
// of it.
struct Row {
  const char* name;
  char letter = 0;  // of the command line
  Section section = Section::action;
  Kind kind = Kind::flag;
  const char* value = nullptr;  // what help calls its text; null for a flag
  const char* help = nullptr;   // null: this build lacks the part
  Take take = nullptr;          // null: this build lacks `part`
  std::uint64_t least = 0, most = 0;
  const char* part = nullptr;  // the CMake option that the option comes with
  bool many = false;           // it may be given more than once
  bool reload = false;         // a changed file counts at SIGHUP, without a restart

  // These make a row of a row, with one thing more.
  constexpr Row known_as(char by_letter) const noexcept {
    Row made = *this;
    made.letter = by_letter;
    return made;
  }
  constexpr Row within(std::uint64_t from, std::uint64_t to) const noexcept {
    Row made = *this;
    made.least = from;
    made.most = to;
    return made;
  }
  constexpr Row of(const char* cmake_option) const noexcept {
    Row made = *this;
    made.part = cmake_option;
    return made;
  }
  constexpr Row repeats() const noexcept {
    Row made = *this;
    made.many = true;
    return made;
  }
  constexpr Row reloads() const noexcept {
    Row made = *this;
    made.reload = true;
    return made;
  }
};

// row makes a row. A build that lacks the part has no help for it.
constexpr Row row(Section section, Kind kind, const char* name, const char* value, const char* help,
                  Take take) noexcept {
  return {.name = name,
          .section = section,
          .kind = kind,
          .value = value,
          .help = take == nullptr ? nullptr : help,
          .take = take};
}

// built returns `take`, or null for a build that lacks the part.
constexpr Take built(bool has, Take take) noexcept {
  return has ? take : nullptr;
}

// all_rows is every option; those of a section are in the order of help.
std::span<const Row> all_rows() noexcept;

// route_key_row is the row of all keys of sections [route PREFIX]; it is none of all_rows.
const Row& route_key_row() noexcept;

// find_row finds an option by its name; null: there is none.
const Row* find_row(std::string_view name) noexcept;

// nearest_row is the option whose name differs least from `name`; null: all differ much.
const Row* nearest_row(std::string_view name) noexcept;
