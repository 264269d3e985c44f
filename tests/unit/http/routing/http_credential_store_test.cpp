// A store of credentials: its lines, and which requests it admits.

#include <CppUTest/TestHarness.h>
#include <coir/http/authorization.h>
#include <string.h>

#include <string_view>

#include "net/src/http/routing/credential_line.h"
#include "net/src/http/text/base64.h"

namespace http_credential_store_test {

using namespace coir::http;
using namespace std::string_view_literals;

namespace {

constexpr std::string_view kToken = "a-token-that-nobody-can-guess";
constexpr std::uint32_t kFew = 1000;

}  // namespace

TEST_GROUP(HttpCredentialStore) {
  char memory[4 * kCredentialLine];
  std::size_t size = 0;

  std::string_view text() const { return {memory, size}; }
  void add(std::string_view line) {
    memcpy(memory + size, line.data(), line.size());
    size += line.size();
    memory[size++] = '\n';
  }
  void add_user(std::string_view name, std::string_view password) {
    char line[kCredentialLine];
    const auto made = basic_line(name, password, line, kFew);
    CHECK_TRUE(made.has_value());
    add(*made);
  }
  void add_token(std::string_view name, std::string_view token) {
    char line[kCredentialLine];
    const auto made = bearer_line(name, token, line);
    CHECK_TRUE(made.has_value());
    add(*made);
  }
  static CredentialStore::Verdict judge(CredentialStore& store, std::string_view authorization) {
    Header headers[] = {{"Authorization", authorization}};
    Request request;
    request.headers = headers;
    return store.judge(request);
  }
  static CredentialStore::Verdict judge(CredentialStore& store, std::string_view user, std::string_view password) {
    char plain[200], field[300] = "Basic ";
    memcpy(plain, user.data(), user.size());
    plain[user.size()] = ':';
    memcpy(plain + user.size() + 1, password.data(), password.size());
    const std::string_view encoded =
        encode_base64({plain, user.size() + 1 + password.size()}, std::span(field).subspan(6));
    return judge(store, {field, 6 + encoded.size()});
  }
};

TEST(HttpCredentialStore, right_passwords_and_tokens_are_admitted_and_no_others) {
  using enum CredentialStore::Verdict;
  add_user("anne", "secret");
  add("# a comment"sv);
  add(""sv);
  add_user(
      "b\xc3\xb6"
      "b",
      "with a blank");
  add_token("robot", kToken);
  auto store = CredentialStore::create();
  CHECK_TRUE(store.has_value());
  const auto loaded = store->load(text());
  CHECK_TRUE(loaded.has_value());
  LONGS_EQUAL(3, *loaded);
  CHECK_TRUE(judge(*store, "anne", "secret") == admitted);
  CHECK_TRUE(judge(*store, "anne", "secret") == admitted);
  CHECK_TRUE(judge(*store, "Bearer a-token-that-nobody-can-guess") == admitted);
  for (const auto& [user, password] : {std::pair("anne"sv, "secre"sv),
                                       {"anne"sv, ""sv},
                                       {"Anne"sv, "secret"sv},
                                       {"bob"sv, "secret"sv},
                                       {"robot"sv, kToken},
                                       {""sv, ""sv}}) {
    CHECK_TRUE(judge(*store, user, password) == refused);
  }
  CHECK_TRUE(judge(*store, "Bearer a-token-that-nobody-can-gues") == refused);
  CHECK_TRUE(judge(*store, "Bearer anne") == refused);
  CHECK_TRUE(judge(*store, "Basic") == refused);
  CHECK_TRUE(judge(*store, "") == refused);
  CHECK_TRUE(store->judge(Request()) == refused);
}

TEST(HttpCredentialStore, a_right_password_is_remembered_until_other_lines_come) {
  using enum CredentialStore::Verdict;
  add_user("anne", "secret");
  auto store = CredentialStore::create();
  CHECK_TRUE(store->load(text()).has_value());
  LONGS_EQUAL(0, store->remembered());
  CHECK_TRUE(judge(*store, "anne", "wrong") == refused);
  LONGS_EQUAL(0, store->remembered());
  CHECK_TRUE(judge(*store, "anne", "secret") == admitted);
  CHECK_TRUE(judge(*store, "anne", "secret") == admitted);
  LONGS_EQUAL(1, store->remembered());
  size = 0;
  add_user("anne", "changed");
  CHECK_TRUE(store->load(text()).has_value());
  LONGS_EQUAL(0, store->remembered());
  CHECK_TRUE(judge(*store, "anne", "secret") == refused);
  CHECK_TRUE(judge(*store, "anne", "changed") == admitted);
}

TEST(HttpCredentialStore, a_bad_line_is_named_and_the_old_ones_count_on) {
  using enum CredentialStore::Verdict;
  add_user("anne", "secret");
  auto store = CredentialStore::create();
  CHECK_TRUE(store->load(text()).has_value());
  add("basic anne"sv);
  const auto loaded = store->load(text());
  CHECK_FALSE(loaded.has_value());
  LONGS_EQUAL(2, loaded.error().line);
  CHECK_TRUE(judge(*store, "anne", "secret") == admitted);
  CHECK_FALSE(store->load("").has_value());
}

TEST(HttpCredentialStore, lines_end_in_any_way_and_what_is_made_can_be_read) {
  add_user("anne", "secret");
  memory[size - 1] = '\r';
  memory[size++] = '\n';
  add_token("robot", kToken);
  --size;
  auto store = CredentialStore::create();
  const auto loaded = store->load(text());
  CHECK_TRUE(loaded.has_value());
  LONGS_EQUAL(2, *loaded);
}

TEST(HttpCredentialStore, no_line_is_made_of_bad_names_and_secrets) {
  char line[kCredentialLine];
  char longest[64];
  memset(longest, 'x', sizeof longest);
  for (const std::string_view name : {""sv, "a:b"sv, "a b"sv, "a\n"sv, std::string_view(longest, 64)}) {
    CHECK_FALSE(basic_line(name, "secret", line, kFew).has_value());
    CHECK_FALSE(bearer_line(name, kToken, line).has_value());
  }
  CHECK_TRUE(basic_line({longest, 63}, "secret", line, 10'000).has_value());
  CHECK_FALSE(basic_line("anne", "", line, kFew).has_value());
  CHECK_FALSE(basic_line("anne", "a\x7f", line, kFew).has_value());
  CHECK_FALSE(basic_line("anne", "secret", line, 999).has_value());
  CHECK_FALSE(bearer_line("robot", kToken.substr(0, 19), line).has_value());
  CHECK_FALSE(bearer_line("robot", "with a blank that is no token", line).has_value());
}

}  // namespace http_credential_store_test
