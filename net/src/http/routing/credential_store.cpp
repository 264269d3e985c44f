#include <coir/blocking.h>
#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/authorization.h>
#include <coir/net/randomness.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>
#include <string.h>

#include <memory>
#include <new>

#include "base/first_secret.h"
#include "base/turn.h"
#include "http/connection/client_limits.h"
#include "http/routing/credential_line.h"
#include "http/routing/guess_limits.h"
#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::size_t kRemembered = 32;
constexpr std::size_t kCheckBytes = 20 * 1024;

class Hex {
 public:
  explicit Hex(std::string_view bytes) noexcept {
    for (const char c : bytes) {
      text_[size_++] = "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
      text_[size_++] = "0123456789abcdef"[c & 15];
    }
  }
  std::string_view text() const noexcept { return {text_, size_}; }

 private:
  std::size_t size_ = 0;
  char text_[2 * kDigestBytes];
};

}  // namespace

struct CredentialStore::State {
  explicit State(std::size_t most_waiting) noexcept : guesses(most_waiting) {}

  TurnLock turn;  // of checking a password
  GuessLimits guesses;
  FirstSecret key;  // of the digests

  // The rest is guarded by the lock, which nobody holds while something waits.
  Spinlock lock;
  std::uint32_t loads = 0;
  std::size_t count = 0;
  std::size_t remembered = 0;
  std::size_t next_place = 0;
  Digest places[kRemembered];
  // One bank counts, the other is where the next text is read, of `prepared` entries.
  unsigned bank = 0;
  std::size_t prepared = 0;
  Credential banks[2][kMostEntries];

  std::span<const Credential> entries() const noexcept { return std::span(banks[bank]).first(count); }

  bool remembers(const Digest& digest) noexcept {
    const Locked locked(lock);
    for (const Digest& place : std::span(places).first(remembered)) {
      if (place == digest) return true;
    }
    return false;
  }

  // remember keeps the digest of a right password, unless other lines have been loaded since it was checked.
  void remember(const Digest& digest, std::uint32_t when) noexcept {
    const Locked locked(lock);
    if (when != loads) return;
    places[next_place] = digest;
    next_place = (next_place + 1) % kRemembered;
    if (remembered < kRemembered) ++remembered;
  }

  // find copies the line of a name out. For one that is not there it makes one up, which no password fits, so that both
  // take the same time.
  bool find(std::string_view name, Credential& out, std::uint32_t& when) noexcept {
    const Locked locked(lock);
    when = loads;
    bool known = false;
    out.iterations = 0;
    for (const Credential& entry : entries()) {
      if (entry.is_token()) continue;
      if (entry.name_text() == name) {
        out = entry;
        return true;
      }
      if (!known) out = entry;
      known = true;
    }
    return false;
  }
};

std::expected<CredentialStore, Error> CredentialStore::create(std::size_t most_waiting) noexcept {
  static_assert(sizeof(State) <= kCheckBytes);
  if (!Pressure::charge(account::http, kCheckBytes)) return std::unexpected(Error{ErrorCode::limit});
  void* const memory = port::reserve(kCheckBytes);
  if (memory == nullptr) {
    account::http.refund(kCheckBytes);
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  return CredentialStore(new (memory) State(most_waiting));
}

CredentialStore::~CredentialStore() {
  if (state_ == nullptr) return;
  std::destroy_at(state_);
  explicit_bzero(state_, sizeof *state_);
  port::release(state_, kCheckBytes);
  account::http.refund(kCheckBytes);
}

std::expected<std::size_t, CredentialStore::Fault> CredentialStore::prepare(std::string_view text) noexcept {
  if (text.size() > kMostText) return std::unexpected(Fault{0, "more than 16 KB"});
  const unsigned bank = 1 - state_->bank;
  std::size_t count = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = until(text, '\n');
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    if (count == kMostEntries) return std::unexpected(Fault{number, "more than 64 entries"});
    Credential& entry = state_->banks[bank][count];
    if (const char* const fault = parse_credential(line, entry)) return std::unexpected(Fault{number, fault});
    for (const Credential& before : std::span(state_->banks[bank]).first(count)) {
      if (before.is_token() == entry.is_token() && before.name_text() == entry.name_text())
        return std::unexpected(Fault{number, "the name was given before"});
    }
    ++count;
  }
  if (count == 0) return std::unexpected(Fault{0, "nobody is named"});
  state_->prepared = count;
  return count;
}

void CredentialStore::apply() noexcept {
  const Locked locked(state_->lock);
  state_->bank = 1 - state_->bank;
  state_->count = state_->prepared;
  state_->remembered = state_->next_place = 0;
  ++state_->loads;
}

std::expected<std::size_t, CredentialStore::Fault> CredentialStore::load(std::string_view text) noexcept {
  const auto count = prepare(text);
  if (count) apply();
  return count;
}

CredentialStore::Verdict CredentialStore::judge(const Request& request, const Address* client) noexcept {
  const std::string_view token = bearer_token(request);
  if (token.data() != nullptr) return holds_token(token) ? Verdict::admitted : Verdict::refused;
  return judge_basic(request, client != nullptr ? ClientLimits::key_of(*client) : 0);
}

bool CredentialStore::holds_token(std::string_view token) noexcept {
  const Digest given = plain_digest({token});
  bool found = false;
  const Locked locked(state_->lock);
  for (const Credential& entry : state_->entries()) {
    found |= entry.is_token() && given == entry.hash;
  }
  return found;
}

CredentialStore::Verdict CredentialStore::judge_basic(const Request& request, std::uint64_t client) noexcept {
  char memory[256];
  const auto given = basic_credentials(request, memory);
  if (!given) return Verdict::refused;
  if (!state_->key.draw()) {
    explicit_bzero(memory, sizeof memory);
    return Verdict::busy;
  }
  const Digest digest = keyed_digest(state_->key.view(), {given->user, {"\0", 1}, given->password});
  if (state_->remembers(digest)) {
    explicit_bzero(memory, sizeof memory);
    return Verdict::admitted;
  }
  Verdict verdict = Verdict::busy;
  GuessLimits& guesses = state_->guesses;
  if (const auto place = guesses.enter(client)) {
    if (const auto turn = state_->turn.lock(); turn) {
      Credential entry;
      std::uint32_t when;
      const bool known = state_->find(given->user, entry, when);
      verdict = Verdict::refused;
      // The request before may have brought the same.
      if (state_->remembers(digest)) {
        verdict = Verdict::admitted;
      } else if (!entry.is_token()) {
        const auto derived = blocking_borrowed(
            [&](const BlockingStop&) { return derive_digest(given->password, entry.salt_text(), entry.iterations); });
        if (!derived) verdict = Verdict::busy;
        if (derived && same_secret(view(*derived), view(entry.hash)) && known) {
          state_->remember(digest, when);
          verdict = Verdict::admitted;
        }
      }
    }
    guesses.leave(*place, verdict == Verdict::refused);
  }
  explicit_bzero(memory, sizeof memory);
  return verdict;
}

std::size_t CredentialStore::remembered() const noexcept {
  const Locked locked(state_->lock);
  return state_->remembered;
}

std::expected<std::string_view, Error> basic_line(std::string_view name, std::string_view password,
                                                  std::span<char, kCredentialLine> out,
                                                  std::uint32_t iterations) noexcept {
  if (!is_credential_name(name) || !is_credential_password(password) || iterations < Credential::kFewestIterations ||
      iterations > Credential::kMostIterations) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  char salt[16];
  if (auto drawn = draw_secret(salt); !drawn) return std::unexpected(drawn.error());
  const std::string_view salt_text(salt, sizeof salt);
  const Digest hash = derive_digest(password, salt_text, iterations);
  return format(out, "basic ", name, " pbkdf2-sha256 ", iterations, " ", Hex(salt_text).text(), " ",
                Hex(view(hash)).text());
}

std::expected<std::string_view, Error> bearer_line(std::string_view name, std::string_view token,
                                                   std::span<char, kCredentialLine> out) noexcept {
  if (!is_credential_name(name) || !is_bearer_token(token) || token.size() < CredentialStore::kShortestToken)
    return std::unexpected(Error{ErrorCode::invalid});
  return format(out, "bearer ", name, " sha256 ", Hex(view(plain_digest({token}))).text());
}

}  // namespace coir::http
