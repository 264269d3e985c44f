// Base64 by RFC 4648: its own vectors, any bytes, and what is refused.

#include <CppUTest/TestHarness.h>

#include <cstddef>
#include <string_view>

#include "net/src/http/text/base64.h"

namespace http_base64_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

}  // namespace

TEST_GROUP(HttpBase64) {};

TEST(HttpBase64, the_vectors_of_the_rfc_are_written_and_read) {
  struct {
    std::string_view bytes, text;
  } const kVectors[] = {{"", ""},
                        {"f", "Zg=="},
                        {"fo", "Zm8="},
                        {"foo", "Zm9v"},
                        {"foob", "Zm9vYg=="},
                        {"fooba", "Zm9vYmE="},
                        {"foobar", "Zm9vYmFy"},
                        {"\xff\xef\xbe", "/+++"},
                        {"\0\0"sv, "AAA="}};
  for (const auto& vector : kVectors) {
    char memory[16];
    LONGS_EQUAL(vector.text.size(), base64_bytes(vector.bytes.size()));
    CHECK_TRUE(encode_base64(vector.bytes, memory) == vector.text);
    const auto bytes = decode_base64(vector.text, memory);
    CHECK_TRUE(bytes.has_value() && *bytes == vector.bytes);
  }
}

TEST(HttpBase64, the_text_of_any_bytes_is_read_back) {
  char bytes[256];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>(i * 151 + 7);
  for (std::size_t size = 0; size <= sizeof bytes; ++size) {
    char text[base64_bytes(sizeof bytes)];
    char again[sizeof bytes];
    const auto read = decode_base64(encode_base64({bytes, size}, text), {again, size});
    CHECK_TRUE(read.has_value() && *read == std::string_view(bytes, size));
  }
}

TEST(HttpBase64, text_with_anything_else_in_it_is_refused) {
  char memory[16];
  for (const std::string_view text :
       {"Z"sv, "Zg"sv, "Zg="sv, "Zg==="sv, "===="sv, "Z==="sv, "Zg=a"sv, "=Zg="sv, "Zm 9v"sv, "Zm9v\n"sv, "Zm9\n"sv,
        "Zm-v"sv, "Zm_v"sv, "Zh=="sv, "Zm9="sv, "Zm9v\0\0\0\0"sv, "Zm9\xff"sv}) {
    CHECK_TRUE_TEXT(decode_base64(text, memory).error() == coir::ErrorCode::invalid, text.data());
  }
  CHECK_TRUE(decode_base64("Zm9v", {memory, 2}).error() == coir::ErrorCode::limit);
}

}  // namespace http_base64_test
