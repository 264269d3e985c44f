#pragma once

#include <coir/error.h>
#include <coir/http/request.h>
#include <coir/net/address.h>
#include <coir/net/secret_hash.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::http {

// CredentialStore knows who may ask for something: people by a name and a password, programs by a token, of both the
// hashes alone. In a build with TLS only.
//
//   auto store = CredentialStore::create();
//   if (auto loaded = store->load(text); !loaded) ... loaded.error() names the line
//   switch (store->judge(exchange.request())) { ...            // in a handler
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
// the verdict on each is held back, at first for 50 ms and twice as long each time up to 3.2 s, while a right one is told
// at once: who guesses waits, and the queue stays short. Ten seconds without a wrong one halve what counts. Without
// fibers, where one request is served at a time, nothing is held back.
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
  // are. On an error nothing changes. One call
  // at a time.
  [[nodiscard]] std::expected<std::size_t, Fault> load(std::string_view text) noexcept;

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
// kShortestToken or no token of RFC 6750).
[[nodiscard]] std::expected<std::string_view, Error> basic_line(
    std::string_view name, std::string_view password, std::span<char, kCredentialLine> out,
    std::uint32_t iterations = CredentialStore::kIterations) noexcept;
[[nodiscard]] std::expected<std::string_view, Error> bearer_line(std::string_view name, std::string_view token,
                                                                 std::span<char, kCredentialLine> out) noexcept;

}  // namespace coir::http
