#include "auth.h"

#if COIR_TLS && COIR_SITE

#include <coir/http/authorization.h>
#include <coir/http/server.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "complaint.h"
#include "private_file.h"

namespace {

using coir::http::CredentialStore;

// NoEcho keeps what is typed off the terminal.
class NoEcho {
 public:
  NoEcho() noexcept : terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!terminal_) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;
  ~NoEcho() {
    if (terminal_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }

 private:
  termios before_{};
  bool terminal_;
};

// read_line reads the first line of standard input; empty when it does not fit.
std::string_view read_line(std::span<char> memory) noexcept {
  const NoEcho quiet;
  std::size_t size = 0;
  for (;;) {
    if (size == memory.size()) return {};
    const ssize_t got = ::read(STDIN_FILENO, memory.data() + size, 1);
    if (got <= 0 || memory[size] == '\n') break;
    ++size;
  }
  if (size > 0 && memory[size - 1] == '\r') --size;
  return {memory.data(), size};
}

}  // namespace

bool read_auth(const NamedFile& named, CredentialStore& store, const char* cure) noexcept {
  const auto file = open_private(named, cure);
  if (!file) return false;
  const auto text = file->read_all(coir::account::http, CredentialStore::kMostText);
  if (!text) return named.wrong(cure, {text.error()});
  const auto loaded = store.prepare(text->text());
  explicit_bzero(const_cast<char*>(text->bytes().data()), text->size());
  if (loaded) return true;
  const CredentialStore::Fault& fault = loaded.error();
  if (fault.line == 0) return named.wrong(cure, {fault.what});
  return complain(cure, {named.path, ", line ", fault.line, ": ", fault.what});
}

bool is_admitted(coir::http::Exchange& exchange, CredentialStore& store, coir::http::FileTree* files) noexcept {
  int status = 401;
  std::string_view fields = "WWW-Authenticate: Basic realm=\"coird\", charset=\"UTF-8\"\r\n";
  const auto client = exchange.peer_address();
  switch (store.judge(exchange.request(), client ? &*client : nullptr)) {
    case CredentialStore::Verdict::admitted:
      return true;
    case CredentialStore::Verdict::refused:
      if (coir::http::bearer_token(exchange.request()).data() != nullptr)
        fields = "WWW-Authenticate: Bearer realm=\"coird\", error=\"invalid_token\"\r\n";
      break;
    case CredentialStore::Verdict::busy:
      status = 503;
      fields = "Retry-After: 1\r\n";
      break;
  }
  files != nullptr ? files->refuse(exchange, status, fields) : exchange.respond_status(status, fields);
  return false;
}

int print_credential(const Options& options) noexcept {
  const bool token = options.action == Options::Action::hash_token;
  char memory[512], line[coir::http::kCredentialLine];
  const std::string_view secret = read_line(memory);
  const auto made = token ? coir::http::bearer_line(options.hash_for, secret, line)
                          : coir::http::basic_line(options.hash_for, secret, line);
  explicit_bzero(memory, sizeof memory);
  if (!made) {
    complain("a name has no colon, blank or control, and 63 bytes at most",
             {"'", options.hash_for, "': not a name, or standard input has no ",
              token ? "token of 20 characters or more" : "password"});
    return 2;
  }
  print({*made});
  return 0;
}

#endif
