#include "complaint.h"

#include <coir/program.h>

#include <coir/net/log_line.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

// All of a wrong configuration, at a reload, is less than the burst.
constinit coir::LogSource g_coird("coird", {.burst = 200, .spacing = std::chrono::milliseconds(100)});
constinit bool g_serving = false;
constinit bool g_nothing = false;  // is said
constinit int g_print_error = 0;   // errno of the first line that could not be printed

// write_all writes what it can and returns 0, or errno.
int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void say_nothing(bool nothing) noexcept {
  g_nothing = nothing;
}

void complain_without_waiting() noexcept {
  g_serving = true;
}

void Word::add_to(coir::Formatter& out) const noexcept {
  if (text_.data() != nullptr) {
    out.add(text_);
  } else {
    out.add(number_);
  }
}

void Word::add_escaped_to(coir::Formatter& out) const noexcept {
  if (text_.data() == nullptr) return add_to(out);
  out.add(coir::escaped(text_));
}

void say(coir::LogSource& source, coir::LogLevel level, std::initializer_list<Word> what) noexcept {
  if (g_nothing) return;
  constexpr std::string_view kProgram = "coird: ";
  char line[kLineBytes];
  coir::Formatter out(line);
  out.add(kProgram);
  for (const Word& word : what) word.add_escaped_to(out);
  const std::string_view text = out.add("\n").text();
  if (g_serving) {
    coir::log_line(source, level, text, kProgram.size());
  } else {
    coir::remember_log_line(source, level, text, kProgram.size());
    write_all(STDERR_FILENO, text);  // there is nobody to tell of an error
  }
}

void say(std::initializer_list<Word> what) noexcept {
  say(g_coird, coir::LogLevel::notice, what);
}

void warn(std::initializer_list<Word> what) noexcept {
  say(g_coird, coir::LogLevel::warning, what);
}

void print(std::initializer_list<Word> what) noexcept {
  char line[kLineBytes];
  coir::Formatter out(line);
  for (const Word& word : what) word.add_to(out);
  print_text(out.add("\n").text());
}

bool complain(const char* cure, std::initializer_list<Word> what) noexcept {
  constexpr std::size_t kForCure = 256;
  char text[kLineBytes - kForCure];
  coir::Formatter out(text);
  for (const Word& word : what) word.add_to(out);
  say(g_coird, coir::LogLevel::error, {out.text(), " (", cure, ")"});
  return false;
}

bool complain_at(const char* file, std::size_t line, const char* cure, std::initializer_list<Word> what) noexcept {
  char text[kLineBytes];
  coir::Formatter out(text);
  for (const Word& word : what) word.add_to(out);
  say(g_coird, coir::LogLevel::error, {file, ":", line, ": ", out.text(), "; ", cure});
  return false;
}

bool lacks(const char* option, const char* part, const char* cure) noexcept {
  if (coir::kFibers) return complain(cure, {"--", option, ": this coird was built without ", part});
  return complain("a build with fibers has it", {"--", option, ": this coird was built without fibers"});
}

void print_text(std::string_view text) noexcept {
  if (const int error = write_all(STDOUT_FILENO, text); g_print_error == 0) g_print_error = error;
}

int printed() noexcept {
  if (g_print_error == 0) return 0;
  say({"cannot write to standard output: ", coir::Error::from_errno(g_print_error)});
  return 1;
}

void fill_standard_streams() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is fd.
    if (open("/dev/null", O_RDWR) < 0) return;
  }
}
