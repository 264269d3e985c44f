// A chunked body decodes to the same content and the same end however it is cut, and to what picohttpparser's own,
// laxer decoder makes of it: a body that we accept means the same to a server that accepts more.

#include <coir/http/wire/chunked.h>
#include <picohttpparser.h>

#include <algorithm>

#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const ChunkedLimits limits = {
      .max_body = 16 * source.byte(), .max_extension_bytes = source.byte(), .max_trailer_bytes = source.byte()};
  const std::size_t step = 1 + source.byte() % 64;
  const std::string_view body = source.rest();

  const Exact whole(body);
  const Exact trailers(std::string_view("0123456789012345678901234567890123456789", 40));
  const Exact slow_trailers(trailers.view());
  ChunkedDecoder decoder;
  const ChunkedResult at_once =
      decoder.decode({whole.data(), whole.size()}, limits, {trailers.data(), trailers.size()});
  const std::string_view content(whole.data(), at_once.data_bytes);
  require(at_once.data_bytes <= at_once.consumed && at_once.consumed <= whole.size());
  require(at_once.data_bytes <= limits.max_body && decoder.content_bytes() == at_once.data_bytes);
  require(at_once.state != ChunkedState::more || at_once.consumed == whole.size());
  require(std::string_view(whole.data() + at_once.consumed, whole.size() - at_once.consumed) ==
          std::string_view(body.data() + at_once.consumed, body.size() - at_once.consumed));

  ChunkedDecoder slow;
  ChunkedResult last;
  std::size_t consumed = 0;
  std::size_t produced = 0;
  while (last.state == ChunkedState::more && consumed < body.size()) {
    const Exact piece(std::string_view(body.data() + consumed, std::min(step, body.size() - consumed)));
    last = slow.decode({piece.data(), piece.size()}, limits, {slow_trailers.data(), slow_trailers.size()});
    require(produced + last.data_bytes <= content.size());
    require(std::string_view(piece.data(), last.data_bytes) ==
            std::string_view(content.data() + produced, last.data_bytes));
    produced += last.data_bytes;
    consumed += last.consumed;
  }
  require(last.state == at_once.state && last.status == at_once.status && consumed == at_once.consumed &&
          produced == content.size());

  if (at_once.state == ChunkedState::done) {
    require(slow.trailer_bytes() == decoder.trailer_bytes() && slow.trailer_bytes() <= slow_trailers.size());
    require(slow_trailers.view() == trailers.view());
    const Exact lax(body);
    phr_chunked_decoder other{};
    other.consume_trailer = 1;
    std::size_t other_size = lax.size();
    const ssize_t left = phr_decode_chunked(&other, lax.data(), &other_size);
    require(left >= 0 && body.size() - static_cast<std::size_t>(left) == consumed);
    require(std::string_view(lax.data(), other_size) == content);
  }
  return 0;
}
