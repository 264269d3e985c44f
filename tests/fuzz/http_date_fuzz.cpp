// A date that is read is written back as the same moment, and every moment can be written.

#include <coir/http/wire/date.h>

#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  std::uint64_t bits = 0;
  for (int byte = 0; byte < 8; ++byte) bits = bits << 8 | source.byte();
  const auto moment = static_cast<std::int64_t>(bits);
  char text[kDateBytes];
  format_date(moment, text);
  const auto same = parse_date({text, sizeof text}, 0);
  require(same.has_value());
  if (moment >= -62167219200 && moment <= 253402300799) require(*same == moment);

  const Exact value(source.rest());
  if (const auto date = parse_date(value.view(), moment % 253402300799)) {
    format_date(*date, text);
    // A two-digit year near a `now` outside of the years that have four digits, and a leap second at their end, are not
    // written.
    if (*date >= -62167219200 && *date <= 253402300799) require(parse_date({text, sizeof text}, 0) == date);
  }
  return 0;
}
