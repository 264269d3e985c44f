// Any bytes from an application. The reader takes each byte once and none that is not there, however the bytes are cut.
// The head that is made of them is a list of whole lines.

#include "fastcgi/record.h"
#include "fastcgi/response_head.h"
#include "require.h"

using namespace coir::http;

namespace {

struct Sum {
  std::size_t output = 0, errors = 0, ends = 0;
  unsigned hash = 0;
  bool bad = false;
  bool operator==(const Sum&) const = default;
};

Sum read(std::string_view bytes, std::size_t piece) {
  Sum sum;
  FastCgiReader reader(1);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    Exact part(bytes.substr(at, piece));
    std::span<char> rest(part.data(), part.size());
    for (;;) {
      const FastCgiEvent event = reader.next(rest);
      if (event.kind == FastCgiEvent::Kind::none) break;
      if (event.kind == FastCgiEvent::Kind::bad) {
        sum.bad = true;
        return sum;
      }
      if (event.kind == FastCgiEvent::Kind::ended) {
        ++sum.ends;
        continue;
      }
      require(!event.bytes.empty() && event.bytes.data() >= part.data() &&
              event.bytes.data() + event.bytes.size() <= part.data() + part.size());
      (event.kind == FastCgiEvent::Kind::output ? sum.output : sum.errors) += event.bytes.size();
      for (const char byte : event.bytes) sum.hash = sum.hash * 31 + static_cast<unsigned char>(byte);
    }
    require(rest.empty());
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(read(bytes, 1 + data[0] % 32) == read(bytes, size));

  Exact memory(std::size_t{256});
  ScriptHead head({memory.data(), memory.size()});
  Exact text(bytes);
  std::span<char> rest(text.data(), text.size());
  if (head.take(rest) != ScriptHead::State::whole) return 0;
  Header fields[8];
  ParsedResponse response;
  if (head.parse(fields, AnswerTo::other, response) != ResponseState::complete) return 0;
  require(response.status >= 200 && response.status <= 599 && !response.headers.empty());
  require(response.end != ContentEnd::chunked);
  return 0;
}
