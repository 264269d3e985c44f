#include <CppUTest/TestHarness.h>
#include <coir/error.h>
#include <errno.h>
#include <string.h>

namespace error_test {

using coir::describe;
using coir::Error;
using coir::ErrorCode;

TEST_GROUP(Error) {};

TEST(Error, every_code_has_a_lower_case_phrase_of_its_own) {
  constexpr int kFirst = static_cast<int>(ErrorCode::cancelled), kLast = static_cast<int>(ErrorCode::deadlock);
  for (int i = kFirst; i <= kLast; ++i) {
    const char* const phrase = describe({static_cast<ErrorCode>(i)});
    CHECK_TRUE(phrase != nullptr && phrase[0] != '\0');
    for (const char* at = phrase; *at != '\0'; ++at) CHECK_TRUE(*at == ' ' || (*at >= 'a' && *at <= 'z'));
    for (int j = kFirst; j < i; ++j) CHECK_TRUE(strcmp(phrase, describe({static_cast<ErrorCode>(j)})) != 0);
  }
  STRCMP_EQUAL("timed out", describe({ErrorCode::timed_out}));
}

TEST(Error, the_kernels_refusal_reads_as_the_kernel_puts_it) {
  STRCMP_EQUAL(strerror(EACCES), describe(Error::from_errno(EACCES)));
}

TEST(Error, a_limit_says_which_where_the_kernel_does) {
  STRCMP_EQUAL("too many open files", describe(Error::from_errno(EMFILE)));
  STRCMP_EQUAL("too many open files", describe(Error::from_errno(ENFILE)));
  STRCMP_EQUAL("limit reached", describe({ErrorCode::limit}));
}

TEST(Error, errno_is_kept_whatever_word_it_maps_to) {
  constexpr struct {
    int number;
    ErrorCode code;
  } kCases[] = {{ECANCELED, ErrorCode::cancelled}, {ETIMEDOUT, ErrorCode::timed_out}, {EPIPE, ErrorCode::closed},
                {ECONNRESET, ErrorCode::closed},   {ENOMEM, ErrorCode::no_memory},    {EMFILE, ErrorCode::limit},
                {EINVAL, ErrorCode::invalid},      {ENOSYS, ErrorCode::unsupported},  {ENOENT, ErrorCode::not_found},
                {ENFILE, ErrorCode::limit},        {EACCES, ErrorCode::system}};
  for (const auto& [number, code] : kCases) {
    const Error error = Error::from_errno(number);
    CHECK_TRUE(error == code);
    LONGS_EQUAL(number, error.sys);
  }
}

TEST(Error, equality_is_of_the_code) {
  CHECK_TRUE(Error::from_errno(EPIPE) == Error::from_errno(ECONNRESET));
  CHECK_TRUE(Error{ErrorCode::closed} == ErrorCode::closed);
  CHECK_FALSE(Error{ErrorCode::closed} == ErrorCode::end_of_stream);
  static_assert(sizeof(Error) == 8);
}

}  // namespace error_test
