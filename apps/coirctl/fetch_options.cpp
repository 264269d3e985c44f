#include "fetch_options.h"

#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <unistd.h>

const std::string_view fetch_help =
    "usage: coirctl fetch [OPTION]... URL\n"
    "\n"
    "Fetches URL, of http or https, and prints its content or saves it.\n"
    "\n"
    "  -o, --output FILE     save as FILE, which has the old content or all of the new one\n"
    "      --resume          keep a broken transfer in FILE.part, and continue there\n"
    "      --timeout SECONDS end after so long, whatever has come by then\n"
    "      --header 'A: B'   send a field as well; up to 16 times\n"
    "      --ca FILE         trust these authorities instead of the system's\n"
    "  -q, --quiet           no progress bar\n"
    "\n"
    "http_proxy, https_proxy and no_proxy count.\n"
    "\n"
    "The exit status tells what went wrong:\n"
    "\n"
    "   0  nothing\n"
    "   2  the command line\n"
    "   3  the address: malformed, or of another scheme\n"
    "   4  the host: no such name, or no name server answers\n"
    "   5  the connection: refused, unreachable, hung up before a response\n"
    "   6  TLS: the certificate, the handshake, no authorities\n"
    "   7  the time: a deadline has passed\n"
    "   8  the server: it answers by another status than success\n"
    "   9  the response: malformed, cut off, a redirect that leads nowhere\n"
    "  10  the file: it cannot be written\n"
    "  11  the machine: memory, descriptors\n";

void say_error(std::string_view what, std::string_view why) noexcept {
  char line[512];
  // A server has chosen parts of many a reason.
  const std::string_view text = coir::format(line, "coirctl: ", coir::escaped(what), ": ", coir::escaped(why), "\n");
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

bool refuse(std::string_view word, std::string_view why) noexcept {
  say_error(word, why);
  return false;
}

namespace {

// read_field parts "Name: value".
bool read_field(std::string_view text, coir::http::RequestField& field) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) return false;
  field.name = {text.data(), colon};
  text.remove_prefix(colon + 1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  field.value = text;
  field.secret = true;  // it is for the server that was named
  return true;
}

}  // namespace

bool FetchOptions::read(int count, char** words) noexcept {
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--resume") {
      resume = true;
    } else if (word == "--quiet" || word == "-q") {
      quiet = true;
    } else if (word.starts_with('-')) {
      const bool known =
          word == "-o" || word == "--output" || word == "--timeout" || word == "--header" || word == "--ca";
      if (!known) return refuse(word, "no such option (coirctl fetch --help tells)");
      const char* const value = i + 1 < count ? words[++i] : nullptr;
      if (value == nullptr) return refuse(word, "a value is missing");
      if (word == "--ca") {
        authorities = value;
      } else if (word == "--timeout") {
        const auto seconds = coir::http::parse_integer(value);
        if (!seconds || *seconds < 1 || *seconds > 1'000'000) return refuse(value, "not a number of seconds");
        timeout_s = static_cast<std::uint32_t>(*seconds);
      } else if (word == "--header") {
        if (field_count == kMostFields) return refuse(value, "more than 16 fields");
        if (!read_field(value, fields[field_count])) return refuse(value, "not a field (write 'Name: value')");
        ++field_count;
      } else {
        output = value;
      }
    } else if (url != nullptr) {
      return refuse(word, "a second address");
    } else {
      url = words[i];
    }
  }
  if (url == nullptr) return refuse("fetch", "no address (coirctl fetch --help tells)");
  if (resume && output == nullptr) return refuse("--resume", "only with --output");
  return true;
}
