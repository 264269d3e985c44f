// Which form of a file a client wants, by Accept-Encoding.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/representation.h>

#include <string_view>

namespace http_codings_test {

using namespace coir::http;

namespace {

constexpr Codings kAll = Codings{} | Coding::identity | Coding::gzip | Coding::br;
constexpr int kRefused = -1;

int best(std::string_view value, Codings available = kAll, std::string_view second = {}) {
  Header headers[] = {{"Host", "t"}, {"accept-encoding", value}, {"Accept-Encoding", second}};
  Request request;
  request.headers = std::span(headers).first(second.data() != nullptr ? 3 : 2);
  const auto chosen = AcceptedCodings(request).best(available);
  return chosen ? static_cast<int>(*chosen) : kRefused;
}

constexpr int kIdentity = static_cast<int>(Coding::identity);
constexpr int kGzip = static_cast<int>(Coding::gzip);
constexpr int kBr = static_cast<int>(Coding::br);

}  // namespace

TEST_GROUP(HttpCodings) {};

TEST(HttpCodings, without_the_field_or_with_an_empty_one_identity_alone_is_taken) {
  const Request none;
  LONGS_EQUAL(kIdentity, static_cast<int>(*AcceptedCodings(none).best(kAll)));
  LONGS_EQUAL(kIdentity, best(""));
  LONGS_EQUAL(kIdentity, best(", ,"));
}

TEST(HttpCodings, the_greatest_weight_wins_and_of_equals_the_better_coding) {
  LONGS_EQUAL(kBr, best("gzip, br"));
  LONGS_EQUAL(kGzip, best("br;q=0.5, gzip;q=0.501"));
  LONGS_EQUAL(kGzip, best("gzip", kAll));
  LONGS_EQUAL(kIdentity, best("gzip;q=0.5, identity;q=0.6"));
  LONGS_EQUAL(kGzip, best("gzip;q=0.001"));
  LONGS_EQUAL(kGzip, best("br, gzip;q=0.2", Codings{} | Coding::identity | Coding::gzip));
  LONGS_EQUAL(kBr, best("GZip;Q=0.3 , BR ; q=1.000"));
  LONGS_EQUAL(kGzip, best("x-gzip"));
}

TEST(HttpCodings, a_star_stands_for_what_is_not_named) {
  LONGS_EQUAL(kBr, best("*"));
  LONGS_EQUAL(kGzip, best("*, br;q=0"));
  LONGS_EQUAL(kGzip, best("gzip, *;q=0"));
  LONGS_EQUAL(kIdentity, best("*;q=0, identity;q=0.1"));
}

TEST(HttpCodings, a_client_that_refuses_all_codings_gets_none) {
  LONGS_EQUAL(kRefused, best("identity;q=0"));
  LONGS_EQUAL(kRefused, best("*;q=0"));
  LONGS_EQUAL(kRefused, best("gzip, identity;q=0", Codings{} | Coding::identity));
  LONGS_EQUAL(kRefused, best("identity;q=0.000"));
}

TEST(HttpCodings, a_malformed_element_is_left_out) {
  for (const std::string_view value :
       {"gzip;q=2", "gzip;q=", "gzip;q", "gzip;q=0.5.5", "gzip;q=-1", "gzip;q=1.001", "gzip;q=0.1234", "gzip;level=9",
        "gzip;q=x", "gz ip", "gzip br", ";q=1", "gzip;q=1;q=1"}) {
    LONGS_EQUAL(kIdentity, best(value));
  }
  LONGS_EQUAL(kBr, best("gzip;q=2, br;q=0.1"));
}

TEST(HttpCodings, several_lines_are_one_list_of_which_the_last_word_counts) {
  LONGS_EQUAL(kGzip, best("br", kAll, "br;q=0, gzip"));
  LONGS_EQUAL(kBr, best("gzip", kAll, "br"));
}

}  // namespace http_codings_test
