// A form is taken apart alike in one piece and in pieces of any size; its names hold nothing that leads elsewhere.

#include <coir/http/detail/multipart_parser.h>

#include <algorithm>

#include "require.h"

using namespace coir::http;
using Parser = detail::MultipartParser;

namespace {

// Taken is a parser's outcome, its content as a sum.
struct Taken {
  unsigned status = 0;
  unsigned parts = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  bool whole = false;

  void add(std::string_view text) {
    for (const char c : text) sum = sum * 1'000'003 + static_cast<unsigned char>(c) + 1;
  }
  bool operator==(const Taken&) const = default;
};

void check(const Part& part, const MultipartLimits& limits) {
  require(part.name.size() <= limits.max_name && part.file_name.size() <= limits.max_name);
  for (const auto text : {part.name, part.file_name, part.content_type}) {
    require(std::ranges::none_of(text, [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; }));
  }
  require(std::ranges::none_of(part.file_name, [](char c) { return c == '/' || c == '\\'; }));
  require(part.file_name != ".." && part.file_name != ".");
}

Taken take(std::string_view form, std::string_view type, std::size_t cut, const MultipartLimits& limits) {
  Taken taken;
  constexpr std::size_t kMemory = 2048;
  char* const memory = static_cast<char*>(malloc(kMemory));
  Parser parser({memory, kMemory}, limits);
  taken.status = parser.begin(type);
  Part part;
  while (taken.status == 0 && !taken.whole) {
    switch (parser.next()) {
      case Parser::Event::more: {
        const std::span<char> room = parser.room();
        require(!room.empty());
        const std::size_t size = std::min({room.size(), form.size(), cut});
        std::copy_n(form.data(), size, room.data());
        form.remove_prefix(size);
        size == 0 ? parser.ended() : parser.filled(size);
        break;
      }
      case Parser::Event::part:
        ++taken.parts;
        part = parser.part();
        check(part, limits);
        taken.add(part.name);
        taken.add(part.file_name);
        taken.add(part.content_type);
        break;
      case Parser::Event::content:
        require(!parser.content().empty());
        taken.bytes += parser.content().size();
        taken.add(parser.content());
        break;
      case Parser::Event::part_end:
        // The name of the part is still there.
        check(part, limits);
        taken.add(part.name);
        break;
      case Parser::Event::end:
        taken.whole = true;
        break;
      case Parser::Event::bad:
        taken.status = parser.status();
        require(taken.status == 400 || taken.status == 413);
        break;
    }
  }
  free(memory);
  // How much of a bad form came before its fault depends on the pieces.
  if (taken.status != 0) taken.parts = 0, taken.bytes = taken.sum = 0;
  return taken;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const std::size_t cut = 1 + source.byte();
  const MultipartLimits limits = {.max_parts = 1 + source.byte() % 8,
                                  .max_header_bytes = 32 + source.byte() * 4,
                                  .max_name = source.byte(),
                                  .max_part_bytes = 16 + source.byte()};
  // The first line is the media type.
  std::string_view rest = source.rest();
  const std::size_t line = std::min(rest.find('\n'), rest.size());
  const Exact type(std::string_view(rest.data(), line));
  rest.remove_prefix(std::min(line + 1, rest.size()));
  const Exact form(rest);
  const Taken whole = take(form.view(), type.view(), SIZE_MAX, limits);
  require(whole == take(form.view(), type.view(), cut, limits));
  require(whole == take(form.view(), type.view(), 1, limits));
  return 0;
}
