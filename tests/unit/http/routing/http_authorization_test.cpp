// Credentials of a request, and the middleware that asks for them.

#include <CppUTest/TestHarness.h>
#include <coir/http/authorization.h>
#include <coir/http/routes.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "tests/support/ask.h"
#include "tests/support/child.h"

namespace http_authorization_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::test::ask;
using coir::test::content_of;
using coir::test::status_of;

char memory[64];

// Sent is a request with an Authorization field.
struct Sent {
  Header headers[3];
  Request request;

  explicit Sent(std::string_view value, std::size_t times = 1)
      : headers{{"Host", "t"}, {"authorization", value}, {"Authorization", value}} {
    request.headers = {headers, 1 + times};
  }
};

bool says(std::string_view value, std::string_view user, std::string_view password) {
  const auto given = basic_credentials(Sent(value).request, memory);
  return given && given->user == user && given->password == password;
}
bool says_nothing(std::string_view value) {
  return !basic_credentials(Sent(value).request, memory).has_value();
}

struct Hub {
  std::string_view password = "secret";
  bool asked = false;
};

bool is_known(std::string_view token) {
  return same_secret(token, "t0ken");
}
void greet(Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello");
}

auto guarded_routes(Hub& hub) {
  const auto is_admin = [&hub](const BasicCredentials& given) {
    hub.asked = true;
    return given.are("admin", hub.password);
  };
  return routes(get<"/basic">(greet, require_basic(auto(is_admin), "the hub")),
                get<"/bearer">(greet, require_bearer(is_known)));
}

// looks_at_all tells whether what is given is compared to its end, whatever it begins with and however short the secret
// is: its last bytes lie on a page that nobody may read.
bool looks_at_all(char first, std::size_t secret_bytes) {
  const auto end = coir::test::in_child([=] {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const pages = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 2;
    const std::span bytes(static_cast<char*>(pages), 3 * page);
    std::ranges::fill(bytes, 'a');
    bytes[page] = first;
    if (mprotect(bytes.data() + 2 * page, page, PROT_NONE) != 0) return 3;
    signal(SIGSEGV, [](int) { _exit(0); });
    const std::string_view given(bytes.data() + page, page + 8);
    volatile bool same = same_secret(given, {bytes.data(), secret_bytes});
    return same ? 4 : 5;
  });
  return end.status == 0;
}

}  // namespace

TEST_GROUP(HttpAuthorization) {
  Hub hub;
  decltype(guarded_routes(std::declval<Hub&>())) app = guarded_routes(hub);
  ServerOptions options = answered_by(app);
  char request[512];

  std::string_view visit(std::string_view path, std::string_view authorization) {
    std::size_t size = 0;
    for (const auto piece :
         {"GET "sv, path, " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"sv, authorization, "\r\n"sv}) {
      memcpy(request + size, piece.data(), piece.size());
      size += piece.size();
    }
    return ask(options, {request, size});
  }
};

TEST(HttpAuthorization, secrets_are_the_same_or_not) {
  CHECK(same_secret("abc", "abc"));
  CHECK(same_secret("", ""));
  CHECK(same_secret("a\0b"sv, "a\0b"sv));
  for (const auto other : {""sv, "ab"sv, "abcd"sv, "abd"sv, "xbc"sv, "abcabc"sv, "ABC"sv, "abc\0"sv}) {
    CHECK_FALSE(same_secret(other, "abc"));
    CHECK_FALSE(same_secret("abc", other));
  }
  CHECK_FALSE(same_secret("\0"sv, ""));
}

TEST(HttpAuthorization, a_wrong_secret_takes_as_long_as_the_right_one) {
  for (const std::size_t secret_bytes : {0, 1, 100, 6'000}) {
    CHECK(looks_at_all('a', secret_bytes));
    CHECK(looks_at_all('b', secret_bytes));
  }
}

TEST(HttpAuthorization, basic_credentials_are_parted_at_the_first_colon) {
  CHECK(says("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"));
  CHECK(says("bAsIc   QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"));
  CHECK(says("Basic YTpiOmM=", "a", "b:c"));
  CHECK(says("Basic Og==", "", ""));
  CHECK(says("Basic dGVzdDoxMjPCow==", "test", "123\xc2\xa3"));
}

TEST(HttpAuthorization, malformed_credentials_are_none) {
  for (const auto value : {""sv, "Basic"sv, "Basic "sv, "BasicQTpi"sv, "Basic QTpi="sv, "Basic QWI="sv, "Basic\tQTpi"sv,
                           "Bearer QTpi"sv, "Basic QTpi x"sv, "Basic QToA"sv, "Basic QToK"sv, "Basic QToJ"sv}) {
    CHECK(says_nothing(value));
  }
  CHECK_FALSE(says_nothing("Basic QTpi"));
  CHECK_FALSE(basic_credentials(Sent("Basic QTpi").request, {memory, 2}).has_value());
  CHECK_FALSE(basic_credentials(Sent("Basic QTpi", 2).request, memory).has_value());
  CHECK_FALSE(basic_credentials(Request(), memory).has_value());
}

TEST(HttpAuthorization, a_bearer_token_is_handed_over_as_it_is) {
  CHECK(bearer_token(Sent("Bearer mF_9.B5f-4.1JqM").request) == "mF_9.B5f-4.1JqM");
  CHECK(bearer_token(Sent("bearer  a~+/b==").request) == "a~+/b==");
  for (const auto value :
       {"Bearer"sv, "Bearer "sv, "Bearer ="sv, "Bearer a b"sv, "Bearer a=b"sv, "Bearer \"a\""sv, "Basic abc"sv}) {
    CHECK(bearer_token(Sent(value).request).data() == nullptr);
  }
  CHECK(bearer_token(Sent("Bearer abc", 2).request).data() == nullptr);
}

TEST(HttpAuthorization, a_guarded_route_asks_for_a_password) {
  auto answer = visit("/basic", "");
  CHECK_EQUAL(401, status_of(answer));
  CHECK(answer.find("\r\nWWW-Authenticate: Basic realm=\"the hub\", charset=\"UTF-8\"\r\n") != answer.npos);
  CHECK_FALSE(hub.asked);
  // admin:secret, admin:secre, amin:secret
  CHECK(content_of(visit("/basic", "Authorization: Basic YWRtaW46c2VjcmV0\r\n")) == "hello");
  CHECK_EQUAL(401, status_of(visit("/basic", "Authorization: Basic YWRtaW46c2VjcmU=\r\n")));
  CHECK_EQUAL(401, status_of(visit("/basic", "Authorization: Basic YW1pbjpzZWNyZXQ=\r\n")));
}

TEST(HttpAuthorization, a_guarded_route_asks_for_a_token) {
  auto answer = visit("/bearer", "");
  CHECK_EQUAL(401, status_of(answer));
  CHECK(answer.find("\r\nWWW-Authenticate: Bearer realm=\"coir\"\r\n") != answer.npos);
  CHECK(content_of(visit("/bearer", "Authorization: Bearer t0ken\r\n")) == "hello");
  answer = visit("/bearer", "Authorization: Bearer token\r\n");
  CHECK_EQUAL(401, status_of(answer));
  CHECK(answer.find("\r\nWWW-Authenticate: Bearer realm=\"coir\", error=\"invalid_token\"\r\n") != answer.npos);
}

}  // namespace http_authorization_test
