#include <coir/http/client.h>
#include <coir/http/detail/content_coding.h>

using namespace coir;

extern "C" bool use_gzip(std::span<const char> from, std::span<char> into) {
  void* const state = http::kGzip.begin();
  if (state == nullptr) return false;
  const auto progress = http::kGzip.decode(state, from, into);
  http::kGzip.end(state);
  return progress == http::ContentCoding::Progress::ended;
}
