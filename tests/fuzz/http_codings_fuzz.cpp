// For every Accept-Encoding, the chosen form exists and is not refused; and a pattern for Cache-Control ends.

#include <coir/http/wire/representation.h>

#include "http/files/glob.h"
#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const auto available = static_cast<Codings>(source.byte() & 7);
  const std::size_t split = source.byte();
  const Exact first(source.rest().substr(0, split < source.rest().size() ? split : source.rest().size()));
  const Exact second(source.rest().substr(first.size()));

  const Header headers[] = {{"Accept-Encoding", first.view()}, {"accept-encoding", second.view()}};
  Request request;
  request.headers = headers;
  const AcceptedCodings accepted(request);
  const auto best = accepted.best(available);
  require(!best || holds(available, *best));
  for (unsigned i = 0; i < kCodings; ++i) {
    const auto coding = static_cast<Coding>(i);
    require(accepted.quality(coding) <= 1000);
    if (!holds(available, coding) || accepted.quality(coding) == 0) continue;
    require(best && accepted.quality(*best) >= accepted.quality(coding));
  }

  (void)matches_glob(first.view(), second.view());
  require(matches_glob("*", second.view()));
  return 0;
}
