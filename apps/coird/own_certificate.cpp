#include "own_certificate.h"

#include <coir/config.h>

#if COIR_TLS

#include <coir/file.h>
#include <coir/net/certificates.h>
#include <coir/sum.h>
#include <coir/worker_stack.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "complaint.h"
#include "own_names.h"
#include "private_file.h"
#include "state_file.h"

namespace {

using coir::SelfSigned;

constexpr const char* kNotThere = "not there";
constexpr const char* kNext = "it is served from memory; the next start makes another";

// Own is coird's key and certificate, in the form of the file, the certificate first. It is static and not on a stack, for
// SIGHUP comes in a fiber, and is wiped after use unless it could not be stored: then there is no other copy.
struct Own {
  char text[2 * SelfSigned::kMaxBytes];  // with a NUL behind it
  std::size_t size;
  bool only_here;  // not in the file
  bool may_store;  // what the file holds is no key that could be lost
  bool whole;      // as it was written

  std::string_view view() const noexcept { return {text, size}; }
  void wipe() noexcept {
    explicit_bzero(text, sizeof text);
    size = 0;
    only_here = false;
  }
};
constinit Own g_own{};

struct WipedUnlessNeeded {
  ~WipedUnlessNeeded() {
    if (!g_own.only_here) g_own.wipe();
  }
};

// Paths are those of its files.
struct Paths {
  char pem[256];
  char certificate[256];
};

// note is for what is no failure.
void note(const char* remark, const char* path, const char* what) noexcept {
  warn({path, ": ", what, " (", remark, ")"});
}

coir::TlsContext failed(const char* cure, const char* path, const char* what) noexcept {
  complain(cure, {path, ": ", what});
  return {};
}

// close_mode sees to it that nobody but its owner can read a key that coird has made, and tells. False: that cannot be
// mended.
bool close_mode(int fd, const char* path, const char* cure) noexcept {
  struct stat status;
  if (::fstat(fd, &status) != 0 || (status.st_mode & 077) == 0) return true;
  if (::fchmod(fd, 0600) != 0) {
    note(cure, path, "others can read the key, and its mode cannot be changed");
    return false;
  }
  note("it may be known; remove the file to have another made", path,
       "others could read the key: its mode is 0600 now");
  return true;
}

// recall reads the file into g_own. Null: it holds something, be it damaged. Else what is wrong with it.
const char* recall(const std::expected<coir::File, coir::Error>& file) noexcept {
  g_own.wipe();
  g_own.may_store = true;
  if (!file && file.error() == coir::ErrorCode::not_found) return kNotThere;
  const auto got = file ? file->read_all(std::span(g_own.text, sizeof g_own.text - 1)) : std::unexpected(file.error());
  if (!got) {
    const bool too_long = got.error() == coir::ErrorCode::limit;
    g_own.wipe();
    // An unreadable certificate may still be good.
    g_own.may_store = too_long;
    return too_long ? "damaged" : describe(got.error());
  }
  const auto content = coir::whole_text({g_own.text, *got});
  g_own.whole = content.has_value();
  g_own.size = content ? content->size() : *got;
  g_own.text[g_own.size] = '\0';
  // Root may have made it. In a folder of the user's it may be another file of root's, but then it is not whole.
  if (g_own.whole) give_secret(file->fd());
  return *got != 0 ? nullptr : "empty";
}

std::optional<coir::TlsContext> context_of(std::string_view pem) noexcept {
  const coir::TlsCertificate certificates[] = {{.chain = pem, .key = pem}};
  auto context = coir::TlsContext::server({.certificates = certificates, .protocols = kProtocols});
  if (!context) return std::nullopt;
  return std::move(*context);
}

// Renewal is what has become of g_own: nothing, for it was in order; issued again, for other names or because there was
// a key only; made anew.
enum class Renewal : std::uint8_t { none, renamed, repaired, made, failed };

// take_up replaces what g_own holds, and wipes what it was made of.
void take_up(SelfSigned& fresh) noexcept {
  g_own.size = coir::format(std::span(g_own.text).first(sizeof g_own.text - 1), fresh.certificate, fresh.key).size();
  g_own.text[g_own.size] = '\0';
  g_own.only_here = g_own.whole = true;
  explicit_bzero(&fresh, sizeof fresh);
}

// renew has g_own hold a certificate for all names of this machine, by the key that it holds, or by a new one where
// there is none and `may_make` allows it. A damaged certificate may still look like one, and is issued again. Takes 12
// KB of stack.
[[gnu::noinline]] Renewal renew(bool may_make, std::optional<coir::TlsContext>& context) noexcept {
  const OwnNames names;
  if (g_own.whole) context = context_of(g_own.view());
  if (context && coir::is_issued_for(g_own.view(), names.all()).value_or(true)) return Renewal::none;
  SelfSigned fresh;
  Renewal outcome = context ? Renewal::renamed : Renewal::repaired;
  if (g_own.size == 0 || !coir::reissue_self_signed(g_own.view(), names.all(), fresh)) {
    // A certificate that lacks a name is better than none.
    if (context) return Renewal::none;
    if (!may_make || !coir::make_self_signed(names.all(), fresh)) return Renewal::failed;
    outcome = Renewal::made;
  }
  take_up(fresh);
  context = context_of(g_own.view());
  if (!context && outcome == Renewal::repaired && may_make && coir::make_self_signed(names.all(), fresh)) {
    // The key is damaged, too: it is not that of its certificate.
    take_up(fresh);
    context = context_of(g_own.view());
    outcome = Renewal::made;
  }
  return context ? outcome : Renewal::failed;
}

// store writes g_own into its file. False: it could not, which has been said.
bool store(const Paths& paths, const Options& options) noexcept {
  if (!g_own.may_store) {
    note(kNext, paths.pem, "left as it is");
    return false;
  }
  make_state_folder(options, true);
  const auto stored = write_state(paths.pem, g_own.view());
  if (!stored) {
    note(kNext, paths.pem, describe(stored.error()));
    return false;
  }
  g_own.only_here = false;
  // It is given to whom coird becomes as one that an earlier run has made.
  if (options.user != nullptr || options.group != nullptr) static_cast<void>(recall(open_state(paths.pem)));
  return true;
}

// certificate_alone is the part of g_own that is no secret.
std::string_view certificate_alone() noexcept {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----\n";
  const std::string_view all = g_own.view();
  const std::size_t from = all.find(kBegin), to = all.find(kEnd);
  if (from == all.npos || to == all.npos || to < from) return {};
  return all.substr(from, to + kEnd.size() - from);
}

// publish keeps self-signed.crt as the certificate is that is served. It is written where it differs only.
void publish(const char* path) noexcept {
  const std::string_view certificate = certificate_alone();
  const auto file = open_state(path);
  const auto there =
      file ? file->read_all(coir::account::process, SelfSigned::kMaxBytes) : std::unexpected(file.error());
  if (certificate.empty() || (there && there->text() == certificate)) return;
  const auto written = coir::replace_file(path, certificate, 0644);
  if (!written) note("clients can be given the certificate of self-signed.pem", path, describe(written.error()));
}

// tell writes the one line about what has been done, given what was wrong with the file.
void tell(Renewal renewal, const char* path, const char* fault) noexcept {
  if (renewal == Renewal::none) return;
  if (renewal == Renewal::renamed)
    return note("its key is the same", path, "issued again: this machine has other names or addresses");
  if (renewal == Renewal::repaired) return note("its key is the same", path, "held no whole certificate: issued again");
  if (fault == kNotThere) {
    if (!g_own.only_here) say({"made a certificate: ", path});
    return;
  }
  warn({path, ": ", fault, ": made a certificate with a new key (tell the clients that know the last key)"});
}

void print_fingerprint() noexcept {
  char shown[coir::kFingerprintBytes];
  if (coir::key_fingerprint(g_own.view(), shown))
    say({"the key's fingerprint, SHA-256 of SubjectPublicKeyInfo: ", shown});
}

bool name_paths(const char* state, Paths& paths) noexcept {
  coir::Formatter pem(paths.pem), certificate(paths.certificate);
  return pem.add(state, "/self-signed.pem", '\0').fits() && certificate.add(state, "/self-signed.crt", '\0').fits();
}

}  // namespace

coir::TlsContext use_own_certificate(const Options& options, bool at_start, const char* cure) noexcept {
  Paths paths;
  if (!name_paths(options.state, paths)) return failed(cure, options.state, "--state is too long");
  const WipedUnlessNeeded wiped;
  const bool was_only_here = g_own.only_here;
  const char* fault = nullptr;
  if (!was_only_here) {
    const auto file = open_state(paths.pem);
    if (file && !close_mode(file->fd(), paths.pem, cure)) return {};
    fault = recall(file);
    if (fault != nullptr && !at_start) return failed(cure, paths.pem, fault);
  }
  std::optional<coir::TlsContext> context;
  const Renewal renewal = coir::on_worker_stack([&]() noexcept { return renew(at_start, context); });
  if (fault == nullptr) fault = "damaged";
  if (renewal == Renewal::failed) return failed(cure, paths.pem, fault);
  if (g_own.only_here && store(paths, options) && was_only_here) note("it was in memory only", paths.pem, "stored");
  tell(renewal, paths.pem, fault);
  if (!g_own.only_here) publish(paths.certificate);
  if (at_start) print_fingerprint();
  return std::move(*context);
}

#endif
