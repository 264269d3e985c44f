// Any bytes as the answer of a time server: a time that is believed is in this century, and answers that request.

#include "require.h"
#include "sntp/sntp_message.h"

using namespace coir::sntp;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  std::uint64_t nonce = 0;
  for (int i = 0; i < 8; ++i) nonce = nonce << 8 | source.byte();
  const Exact bytes(source.rest());
  const Answer answer = read_answer(bytes.view(), nonce);
  if (answer.verdict == Verdict::not_ours) return 0;
  char request[kMessageBytes];
  write_request(request, nonce);
  require(bytes.size() >= kMessageBytes && memcmp(bytes.data() + 24, request + 40, 8) == 0);
  if (answer.verdict != Verdict::time) return 0;
  constexpr std::int64_t kFirst = 1'767'225'600'000'000'000, kCentury = 36525LL * 86400 * 1'000'000'000;
  require(answer.received_ns >= kFirst && answer.sent_ns >= answer.received_ns && answer.sent_ns - kFirst < kCentury);
  require(answer.stratum >= 1 && answer.stratum <= 15);
  return 0;
}
