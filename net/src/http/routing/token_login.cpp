#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/http/authorization.h>
#include <coir/http/content.h>
#include <coir/http/token_login.h>
#include <coir/http/wire/cookies.h>
#include <string.h>

#include "base/charged.h"
#include "base/first_secret.h"
#include "http/connection/client_limits.h"
#include "http/message/origin.h"
#include "http/routing/guess_limits.h"
#include "http/session/own_host.h"
#include "http/session/session.h"

namespace coir::http {
namespace {

constexpr std::string_view kCookie = "coir_login";
constexpr std::string_view kSetCookie = "Set-Cookie: ";

// CookieValue is the key of the logins, as the cookie has it.
class CookieValue {
 public:
  CookieValue() noexcept = default;
  CookieValue(const CookieValue&) = delete;
  CookieValue& operator=(const CookieValue&) = delete;
  ~CookieValue() { explicit_bzero(digits_, sizeof digits_); }

  // read is false while there is no key.
  bool read(FirstSecret& key) noexcept {
    char bytes[FirstSecret::kBytes];
    if (!key.copy(bytes)) return false;
    for (std::size_t i = 0; i < sizeof digits_; ++i)
      digits_[i] = "0123456789abcdef"[(bytes[i / 2] >> (i % 2 * 4)) & 15];
    explicit_bzero(bytes, sizeof bytes);
    return true;
  }
  std::string_view text() const noexcept { return {digits_, sizeof digits_}; }

 private:
  char digits_[2 * FirstSecret::kBytes];
};

}  // namespace

struct TokenLogin::State {
  GuessLimits guesses{GuessLimits::kMostWaiting};
  FirstSecret key;
};

TokenLogin::TokenLogin(std::string_view token, std::string_view path) noexcept : token_(token), path_(path) {
  state_ = construct_charged<State>(account::http);
}

TokenLogin::~TokenLogin() {
  destroy_charged(account::http, state_);
}

bool TokenLogin::refuses(Exchange& exchange) noexcept {
  if (!Session::of(exchange).has_own_host()) {
    exchange.respond_status(421);
  } else if (!is_allowed_origin(exchange.request(), exchange.secure(), {})) {
    exchange.respond_status(403);
  } else {
    return false;
  }
  return true;
}

bool TokenLogin::admits(const Request& request) noexcept {
  CookieValue value;
  return state_ != nullptr && value.read(state_->key) && same_secret(cookie_value(request, kCookie), value.text());
}

TokenLogin::Verdict TokenLogin::log_in(Exchange& exchange) noexcept {
  char form[3 * kMostToken + 16], room[kMostToken];
  Verdict verdict = Verdict::answered;
  // A client may take its time with the form: the place is taken behind it.
  if (const auto pairs = read_form(exchange, form)) {
    const auto client = exchange.peer_address();
    const auto place =
        state_ != nullptr ? state_->guesses.enter(client ? ClientLimits::key_of(*client) : 0) : std::nullopt;
    verdict = Verdict::busy;
    if (place) {
      const auto given = query_value(*pairs, "token", room);
      verdict = given && same_secret(*given, token_) ? Verdict::admitted : Verdict::refused;
      state_->guesses.leave(*place, verdict == Verdict::refused);
    }
  }
  explicit_bzero(form, sizeof form);
  explicit_bzero(room, sizeof room);
  if (verdict != Verdict::admitted) return verdict;
  return state_->key.draw() && send_cookie(exchange) ? Verdict::admitted : Verdict::busy;
}

bool TokenLogin::send_cookie(Exchange& exchange) noexcept {
  CookieValue value;
  char field[kMostPath + 192];
  if (!value.read(state_->key)) return false;
  memcpy(field, kSetCookie.data(), kSetCookie.size());
  const std::span<char> room = std::span(field).subspan(kSetCookie.size());
  const auto cookie =
      write_cookie(kCookie, value.text(), {.path = path_, .same_site = SameSite::strict, .secure = exchange.secure()},
                   room.first(room.size() - 2));
  if (!cookie) return false;
  memcpy(room.data() + cookie->size(), "\r\n", 2);
  exchange.add_fields({field, kSetCookie.size() + cookie->size() + 2});
  explicit_bzero(field, sizeof field);
  return true;
}

void TokenLogin::log_out() noexcept {
  if (state_ != nullptr) state_->key.forget();
}

}  // namespace coir::http
