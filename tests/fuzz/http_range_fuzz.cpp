// A range that is served lies inside the representation, and If-Match's and If-None-Match's lists are read within their
// bounds.

#include <coir/http/wire/representation.h>

#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  std::uint64_t length = 0;
  for (unsigned bytes = source.byte() % 9; bytes > 0; --bytes) length = length << 8 | source.byte();
  const Exact value(source.rest());

  const Range range = parse_range(value.view(), length);
  char text[kContentRangeBytes];
  if (range.kind == Range::Kind::part) {
    require(range.first <= range.last && range.last < length);
    require(range.bytes() > 0 && range.bytes() <= length);
    const std::string_view written = write_content_range(range, length, text);
    require(begins(written, "bytes ") && written.size() <= sizeof text);
  } else if (range.kind == Range::Kind::unsatisfiable) {
    require(begins(write_content_range(range, length, text), "bytes */"));
  }

  // A strong match is a weak match too.
  const bool strong = etag_list_matches(value.view(), "\"a\"", true);
  const bool weak = etag_list_matches(value.view(), "\"a\"", false);
  require(!strong || weak);
  require(!etag_list_matches(value.view(), "W/\"a\"", true));
  require(etag_list_matches(value.view(), "W/\"a\"", false) == weak);

  Request request;
  request.range = value.view();
  request.if_range = value.view();
  request.if_match = value.view();
  request.if_none_match = value.view();
  (void)evaluate(request, {.etag = "\"a\"", .modified = 784111777}, 1767225600);
  return 0;
}
