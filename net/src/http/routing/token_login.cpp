#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/http/authorization.h>
#include <coir/http/content.h>
#include <coir/http/token_login.h>
#include <coir/http/wire/cookies.h>
#include <coir/net/randomness.h>
#include <string.h>

#include "base/charged.h"
#include "http/connection/client_limits.h"
#include "http/message/origin.h"
#include "http/routing/guess_limits.h"
#include "http/session/own_host.h"
#include "http/session/session.h"

namespace coir::http {
namespace {

constexpr std::string_view kCookie = "coir_login";
constexpr std::string_view kSetCookie = "Set-Cookie: ";

}  // namespace

TokenLogin::TokenLogin(std::string_view token, std::string_view path) noexcept : token_(token), path_(path) {
  guesses_ = construct_charged<GuessLimits>(account::http, GuessLimits::kMostWaiting);
}

TokenLogin::~TokenLogin() {
  explicit_bzero(key_, sizeof key_);
  destroy_charged(account::http, guesses_);
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
  const std::string_view given = cookie_value(request, kCookie);
  const Locked locked(lock_);
  return drawn_ && same_secret(given, {key_, sizeof key_});
}

// draw_key has a key, that of the logins before if there are any. False: the kernel has no randomness yet, after some time.
bool TokenLogin::draw_key() noexcept {
  char drawn[kKeyDigits / 2];
  if (!draw_secret(drawn, Deadline::after(std::chrono::seconds(10)))) return false;
  const Locked locked(lock_);
  if (drawn_) return true;
  for (std::size_t i = 0; i < kKeyDigits; ++i) key_[i] = "0123456789abcdef"[(drawn[i / 2] >> (i % 2 * 4)) & 15];
  drawn_ = true;
  return true;
}

TokenLogin::Verdict TokenLogin::log_in(Exchange& exchange) noexcept {
  char form[3 * kMostToken + 16], room[kMostToken];
  Verdict verdict = Verdict::answered;
  // A client may take its time with the form: the place is taken behind it.
  if (const auto pairs = read_form(exchange, form)) {
    const auto client = exchange.peer_address();
    const auto place = guesses_ != nullptr ? guesses_->enter(client ? ClientLimits::key_of(*client) : 0) : std::nullopt;
    verdict = Verdict::busy;
    if (place) {
      const auto given = query_value(*pairs, "token", room);
      verdict = given && same_secret(*given, token_) ? Verdict::admitted : Verdict::refused;
      guesses_->leave(*place, verdict == Verdict::refused);
    }
  }
  explicit_bzero(form, sizeof form);
  explicit_bzero(room, sizeof room);
  if (verdict != Verdict::admitted) return verdict;
  return draw_key() && send_cookie(exchange) ? Verdict::admitted : Verdict::busy;
}

bool TokenLogin::send_cookie(Exchange& exchange) noexcept {
  char key[kKeyDigits], field[kMostPath + 160];
  {
    const Locked locked(lock_);
    memcpy(key, key_, sizeof key);
  }
  memcpy(field, kSetCookie.data(), kSetCookie.size());
  const std::span<char> room = std::span(field).subspan(kSetCookie.size());
  const auto cookie = write_cookie(kCookie, {key, sizeof key},
                                   {.path = path_, .same_site = SameSite::strict, .secure = exchange.secure()},
                                   room.first(room.size() - 2));
  if (!cookie) return false;
  memcpy(room.data() + cookie->size(), "\r\n", 2);
  exchange.add_fields({field, kSetCookie.size() + cookie->size() + 2});
  explicit_bzero(field, sizeof field);
  return true;
}

void TokenLogin::log_out() noexcept {
  const Locked locked(lock_);
  drawn_ = false;
}

}  // namespace coir::http
