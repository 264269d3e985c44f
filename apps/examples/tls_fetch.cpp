// A client of an https server: it is found by its name, has to prove that it is the one, and the second connection
// takes up the first one's session where the server allows it. The same code runs on a fiber and, built without them,
// on the main thread.

#include <coir/file.h>
#include <coir/program.h>
#include <coir/tls.h>
#include <coir/worker_stack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <charconv>
#include <string_view>

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;

constinit coir::Account files("files");  // what is held of certificates and keys

struct Wishes {
  const char* authorities = nullptr;
  const char* certificate = nullptr;
  const char* key = nullptr;
  const char* protocol = nullptr;
  std::chrono::milliseconds timeout{10'000};
  bool twice = false;
  std::string_view host;
  std::uint16_t port = 443;
  std::string_view path = "/";
};

int usage() {
  puts(
      "usage: tls_fetch --ca FILE [--cert FILE --key FILE] [--alpn NAME] [--timeout-ms N] [--twice] "
      "https://HOST[:PORT]/PATH\n"
      "\n"
      "Fetches PATH, twice with --twice, and prints of each answer TLS's version, whether the session was resumed, "
      "what\n"
      "ALPN chose, the status, and how many bytes the content had.");
  return 0;
}

// say is printf from a small fiber's stack.
template <class... Parts>
void say(FILE* to, const char* format, Parts... parts) {
  coir::on_worker_stack([&] {
    fprintf(to, format, parts...);
    fflush(to);
  });
}

int fail(const char* what, const char* why) {
  say(stderr, "tls_fetch: %s: %s\n", what, why);
  return 1;
}

bool read_url(std::string_view url, Wishes& wishes) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  const std::size_t slash = url.find('/');
  if (slash != url.npos) wishes.path = url.substr(slash);
  std::string_view authority = url.substr(0, slash);
  std::size_t colon = authority.rfind(':');
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == authority.npos) return false;
    wishes.host = authority.substr(1, end - 1);
    colon = authority.substr(end + 1).starts_with(':') ? end + 1 : authority.npos;
  } else {
    wishes.host = authority.substr(0, colon);
  }
  if (colon == authority.npos) return !wishes.host.empty();
  const std::string_view digits = authority.substr(colon + 1);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), wishes.port);
  return !wishes.host.empty() && fault == std::errc() && end == digits.data() + digits.size();
}

bool read_options(int count, char** words, Wishes& wishes) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const char* const value = i + 1 < count ? words[i + 1] : nullptr;
    if (word == "--twice") {
      wishes.twice = true;
      continue;
    }
    if (!word.starts_with("--")) {
      if (!read_url(word, wishes)) return false;
      continue;
    }
    if (value == nullptr) return false;
    ++i;
    if (word == "--ca") {
      wishes.authorities = value;
    } else if (word == "--cert") {
      wishes.certificate = value;
    } else if (word == "--key") {
      wishes.key = value;
    } else if (word == "--alpn") {
      wishes.protocol = value;
    } else if (word == "--timeout-ms") {
      wishes.timeout = std::chrono::milliseconds(atoi(value));
    } else {
      return false;
    }
  }
  return wishes.authorities != nullptr && !wishes.host.empty() &&
         (wishes.certificate == nullptr) == (wishes.key == nullptr);
}

std::expected<coir::FileBytes, coir::Error> read_file(const char* path) {
  auto file = coir::File::open(path);
  if (!file) return std::unexpected(file.error());
  return file->read_all(files, kMostBytes);
}

// fetch leaves in `ticket` what the next may resume the session by.
[[gnu::noinline]] std::expected<void, coir::Error> fetch(const Wishes& wishes, const coir::TlsContext& context,
                                                         coir::TlsTicket& ticket, coir::Deadline deadline) {
  auto stream = coir::connect_tls(wishes.host, wishes.port, context, ticket, deadline);
  if (!stream) return std::unexpected(stream.error());
  const char* const protocol = stream->protocol();
  say(stdout, "version: %s\nresumed: %s\nalpn: %s\n", stream->version(), stream->resumed() ? "yes" : "no",
      protocol != nullptr ? protocol : "none");

  for (const std::string_view part : {std::string_view("GET "), wishes.path, std::string_view(" HTTP/1.1\r\nHost: "),
                                      wishes.host, std::string_view("\r\nConnection: close\r\n\r\n")}) {
    if (auto written = stream->write(part, deadline); !written) return written;
  }
  // The head, up to its empty line; what the buffer holds behind it is content already.
  char buffer[2048];
  std::size_t held = 0, head = std::string_view::npos;
  while (head == std::string_view::npos) {
    if (held == sizeof buffer) return std::unexpected(coir::Error{coir::ErrorCode::limit});
    const auto got = stream->read(std::span(buffer).subspan(held), deadline);
    if (!got) return std::unexpected(got.error());
    held += *got;
    head = std::string_view(buffer, held).find("\r\n\r\n");
  }
  const std::string_view line(buffer, head);
  say(stdout, "status: %.3s\n", line.size() > 12 ? line.data() + 9 : "???");
  std::size_t content = held - head - 4;
  for (;;) {
    const auto got = stream->read(buffer, deadline);
    if (!got && got.error() == coir::ErrorCode::end_of_stream) break;
    if (!got) return std::unexpected(got.error());
    content += *got;
  }
  say(stdout, "bytes: %zu\n", content);
  if (auto given = stream->ticket()) ticket = std::move(*given);
  return {};
}

int run(const Wishes& wishes) {
  const auto authorities = read_file(wishes.authorities);
  if (!authorities) return fail(wishes.authorities, describe(authorities.error()));
  coir::FileBytes chain, key;
  if (wishes.certificate != nullptr) {
    for (auto [path, bytes] : {std::pair(wishes.certificate, &chain), std::pair(wishes.key, &key)}) {
      auto read = read_file(path);
      if (!read) return fail(path, describe(read.error()));
      *bytes = std::move(*read);
    }
  }
  const coir::TlsCertificate certificate{.chain = chain.text(), .key = key.text()};
  const char* const protocols[] = {wishes.protocol};
  const auto context = coir::TlsContext::client(
      {.authorities = authorities->text(),
       .certificate = wishes.certificate != nullptr ? &certificate : nullptr,
       .protocols = std::span<const char* const>(protocols, wishes.protocol != nullptr ? 1 : 0),
       .tickets = true});
  if (!context) return fail("the certificates", describe(context.error()));

  coir::TlsTicket ticket;
  for (int i = 0; i < (wishes.twice ? 2 : 1); ++i) {
    const auto fetched = fetch(wishes, *context, ticket, coir::Deadline::after(wishes.timeout));
    if (!fetched) return fail("fetching", describe(fetched.error()));
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 1) return usage();
  Wishes wishes;
  if (!read_options(count, words, wishes)) {
    fputs("tls_fetch: the command line is wrong; without words it tells what it takes\n", stderr);
    return 2;
  }
  return coir::run_program([&] { return run(wishes); });
}
