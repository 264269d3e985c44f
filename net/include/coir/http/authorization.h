#pragma once

// Credentials of a request.
//
//   auto app = routes(get<"/status">([](Exchange& exchange) { exchange.respond(200, "text/plain", "well\n"); },
//                                    require_basic([](const BasicCredentials& given) {
//                                      return given.are("admin", text);
//                                    }, "board")));
//   return serve({.listen = ":8080"}, app);

#include <coir/error.h>
#include <coir/http/detail/route_call.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/request.h>
#include <coir/net/address.h>
#include <coir/net/detail/secret_hash.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coir::http {

// same_secret compares what a client has sent with a secret, in a time that depends on the length of `given` alone.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

// BasicCredentials are a name and a password by the Basic scheme (RFC 7617): without TLS everybody can read them.
struct BasicCredentials {
  std::string_view user;
  std::string_view password;

  // are compares both, in constant time: a wrong name takes as long as a wrong password.
  bool are(std::string_view wanted_user, std::string_view wanted_password) const noexcept;
};

// basic_credentials decodes a request's credentials into `memory`. Absent: there are none, they are malformed or hold
// controls, the field is there twice, or they do not fit.
std::optional<BasicCredentials> basic_credentials(const Request& request, std::span<char> memory) noexcept;

// bearer_token returns the token that a request brings by the Bearer scheme (RFC 6750), an absent view (data() ==
// nullptr) when there is none, it is malformed, or the field is there twice.
std::string_view bearer_token(const Request& request) noexcept;

// Realm is the name that a browser shows when it asks its user: visible text, checked while compiling.
class Realm {
 public:
  template <std::size_t kSize>
  consteval Realm(const char (&literal)[kSize]) : text_(literal, kSize - 1) {
    if (text_.empty()) a_realm_is_visible_text_without_quotes_and_backslashes();
    for (const char c : text_) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') a_realm_is_visible_text_without_quotes_and_backslashes();
    }
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  static void a_realm_is_visible_text_without_quotes_and_backslashes();

  std::string_view text_;
};

namespace detail {

void ask_for_basic(Exchange& exchange, std::string_view realm) noexcept;
void ask_for_bearer(Exchange& exchange, std::string_view realm) noexcept;

template <class Check>
struct BasicGate {
  static_assert(std::is_invocable_r_v<bool, Check&, const BasicCredentials&>, "a check takes what the client has sent");

  [[no_unique_address]] Check check;
  Realm realm;

  void operator()(Exchange& exchange, Next next) {
    opens(exchange) ? next(exchange) : ask_for_basic(exchange, realm.text());
  }

 private:
  // The credentials leave the stack before the handler comes.
  [[gnu::noinline]] bool opens(Exchange& exchange) {
    char memory[256];
    const auto credentials = basic_credentials(exchange.request(), memory);
    return credentials && check(*credentials);
  }
};

template <class Check>
struct BearerGate {
  static_assert(std::is_invocable_r_v<bool, Check&, std::string_view>, "a check takes what the client has sent");

  [[no_unique_address]] Check check;
  Realm realm;

  void operator()(Exchange& exchange, Next next) {
    const std::string_view token = bearer_token(exchange.request());
    token.data() != nullptr&& check(token) ? next(exchange) : ask_for_bearer(exchange, realm.text());
  }
};

}  // namespace detail

// require_basic is a middleware that lets a request through whose credentials pass the check, and answers others 401.
//
//   auto app = routes(put<"/sensors/{name}">(change, require_basic([&](const BasicCredentials& given) {
//     return given.are("admin", hub.password());
//   }, "hub")));
//
// The credentials are valid while the check runs. User and password together have room for 255 bytes.
template <class Check>
constexpr detail::BasicGate<detail::Kept<Check>> require_basic(Check&& check, Realm realm = "coir") {
  return {std::forward<Check>(check), realm};
}

// require_bearer does the same with a token: bool(std::string_view), to be compared by same_secret.
template <class Check>
constexpr detail::BearerGate<detail::Kept<Check>> require_bearer(Check&& check, Realm realm = "coir") {
  return {std::forward<Check>(check), realm};
}

// CredentialStore (credential_store.cpp) knows who may ask for something: people by a name and a password, programs by
// a token, of both the hashes alone. In a build with TLS only.
//
//   auto store = CredentialStore::create();
//   if (auto loaded = store->load(text); !loaded) complain(loaded.error().line);
//   const bool is_known = store->judge(exchange.request()) == CredentialStore::Verdict::admitted;   // in a handler
//
// Each line of the text is one of these; empty lines and those that begin with '#' are skipped:
//
//   basic NAME pbkdf2-sha256 ITERATIONS SALT HASH        SALT and HASH in hexadecimal digits
//   bearer NAME sha256 HASH                              of a token that nobody can guess
//
// A password is checked on the blocking pool, one at a time, for it takes long on purpose; that it was right is
// remembered, by a digest under a key that the process has drawn, and costs the next requests some 5 us. An unknown
// name takes as long as a wrong password.
//
// A client that guesses passwords locks out no other. Checks are made in the order of their requests, and one client
// address (an IPv6 /64) gets at most three quarters of the places to wait in. From the third wrong password of an address on,
// the verdict on each wrong one is delayed, at first by 50 ms and twice as long each time up to 3.2 s. A right one is
// answered at once: a client that guesses waits, and the queue stays short. Ten seconds without a wrong one halve the
// count. Without fibers, where one request is served at a time, nothing is held back.
class CredentialStore {
 public:
  static constexpr std::size_t kMostEntries = 64;
  static constexpr std::size_t kMostText = 16 * 1024;
  static constexpr std::uint32_t kIterations = 100'000;  // of a line that is made here
  static constexpr std::size_t kShortestToken = 20;

  enum class Verdict : std::uint8_t {
    admitted,
    refused,  // no credentials, or wrong ones
    busy,     // too many passwords are being checked, of this address or in all
  };

  // Fault is what is wrong with a text.
  struct Fault {
    std::size_t line = 0;  // 0: the text as a whole
    const char* what = "";
  };

  // create takes 20 KB, charged to account::http. So many requests, 4 or more, may wait for a check; as each holds a
  // session of the server, half of ServerOptions::max_active is enough. Half as many are held back at a time.
  // Errors: no_memory, limit (the ledger grants nothing).
  [[nodiscard]] static std::expected<CredentialStore, Error> create(std::size_t most_waiting = 32) noexcept;

  CredentialStore(CredentialStore&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  CredentialStore& operator=(CredentialStore&&) = delete;
  ~CredentialStore();

  // load reads a text and has it count from now on; what was remembered is forgotten. Returns how many entries there
  // are. On an error nothing changes. One call at a time.
  [[nodiscard]] std::expected<std::size_t, Fault> load(std::string_view text) noexcept;
  // prepare and apply are load in two steps, for a program that reads several files and has all of them count or none:
  // prepare reads a text, and the last one that it found in order counts from apply on.
  [[nodiscard]] std::expected<std::size_t, Fault> prepare(std::string_view text) noexcept;
  void apply() noexcept;

  // judge looks at a request's credentials; from several fibers and workers at once, on a fiber or a plain thread.
  // Waits for the check of a password that is not remembered. `client` is the peer's address; without one, and behind
  // a proxy, all are one client. Takes 1 KB of stack.
  Verdict judge(const Request& request, const Address* client = nullptr) noexcept;

  // remembered is how many right passwords are in memory.
  std::size_t remembered() const noexcept;

 private:
  struct State;
  explicit CredentialStore(State* state) noexcept : state_(state) {}
  Verdict judge_basic(const Request& request, std::uint64_t client) noexcept;
  bool holds_token(std::string_view token) noexcept;

  State* state_;
};

// kCredentialLine is room for a line of either kind.
inline constexpr std::size_t kCredentialLine = 256;

// basic_line and bearer_line write a line for a store, without its end. The salt is drawn from the kernel, which may
// make the first call after a boot wait. basic_line takes as long as a check. Errors: invalid (the name is empty, over
// 63 bytes, or holds a colon, a blank or a control; the password is empty or holds a control; the token is shorter than
// kShortestToken or no token of RFC 6750); those of draw_secret.
[[nodiscard]] std::expected<std::string_view, Error> basic_line(
    std::string_view name, std::string_view password, std::span<char, kCredentialLine> out,
    std::uint32_t iterations = CredentialStore::kIterations) noexcept;
[[nodiscard]] std::expected<std::string_view, Error> bearer_line(std::string_view name, std::string_view token,
                                                                 std::span<char, kCredentialLine> out) noexcept;

}  // namespace coir::http
