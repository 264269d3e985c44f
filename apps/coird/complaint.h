#pragma once

#include <coir/error.h>
#include <coir/format.h>
#include <coir/net/log_line.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

// coird's messages, made by coir/format.h: nothing here needs more stack than a fiber has.

// The longest line that is said; a longer one is cut.
inline constexpr std::size_t kLineBytes = 704;

// Word is one of the parts that the lines below are made of: a text, or a number.
class Word {
 public:
  constexpr Word(const char* text) noexcept : text_(text) {}
  constexpr Word(std::string_view text) noexcept : text_(text) {}
  Word(coir::Error error) noexcept : text_(describe(error)) {}
  constexpr Word(std::unsigned_integral auto number) noexcept : number_(number) {}

  void add_to(coir::Formatter& out) const noexcept;
  // add_escaped_to escapes a text: a value with a line break would make two lines of one.
  void add_escaped_to(coir::Formatter& out) const noexcept;

 private:
  std::string_view text_;  // null: a number
  std::uint64_t number_ = 0;
};

// say writes the line "coird: WHAT" to standard error and, as WHAT, to the log: as a notice, warn as a warning. Lines that
// clients and upstreams cause have a source and a rate of their own. print writes the line WHAT to standard output.
void say(std::initializer_list<Word> what) noexcept;
void warn(std::initializer_list<Word> what) noexcept;
void say(coir::LogSource& source, coir::LogLevel level, std::initializer_list<Word> what) noexcept;
void print(std::initializer_list<Word> what) noexcept;
void print_text(std::string_view text) noexcept;

// say_nothing has no line said, until it is called with false: what is read a second time was complained of. Before the run.
void say_nothing(bool nothing) noexcept;

// printed returns the exit status after what was printed: 1, with a line, if standard output did not take it.
int printed() noexcept;

// fill_standard_streams opens /dev/null in the place of each standard stream that is closed, before anything else is
// opened: no connection may take a number to which lines are written.
void fill_standard_streams() noexcept;

// complain writes the line "coird: WHAT (CURE)" to standard error, as an error of the log, and returns false. A `what`
// that is too long is cut, its cure is not.
bool complain(const char* cure, std::initializer_list<Word> what) noexcept;

// complain_at does so of a line of a file: "coird: FILE:LINE: WHAT; CURE".
bool complain_at(const char* file, std::size_t line, const char* cure, std::initializer_list<Word> what) noexcept;

// lacks complains of an option of a part that is left out of this build, as all such parts are of one without fibers, and
// returns false.
bool lacks(const char* option, const char* part, const char* cure) noexcept;

// complain_without_waiting is called once, before anything is served: from then on a line that nobody reads is dropped
// (coir/net/log_line.h).
void complain_without_waiting() noexcept;
