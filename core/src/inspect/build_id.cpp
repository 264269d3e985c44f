#include <coir/crash.h>
#include <string.h>

#include "inspect/program_header.h"

namespace coir {

std::span<const unsigned char> build_id() noexcept {
  const auto* const start = reinterpret_cast<const unsigned char*>(&__ehdr_start);
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(start + __ehdr_start.e_phoff);
  // The first segment that is loaded begins with the file's header.
  const auto text_at = [&](const ElfW(Phdr) & part) noexcept { return start + part.p_offset; };
  for (unsigned i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (headers[i].p_type != PT_NOTE) continue;
    const unsigned char* at = text_at(headers[i]);
    const unsigned char* const end = at + headers[i].p_filesz;
    while (end - at >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
      ElfW(Nhdr) note;
      memcpy(&note, at, sizeof note);
      const unsigned char* const name = at + sizeof note;
      const std::size_t name_room = (note.n_namesz + 3) & ~std::size_t{3};
      const std::size_t text_room = (note.n_descsz + 3) & ~std::size_t{3};
      if (name_room + text_room > static_cast<std::size_t>(end - name)) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
        return {name + name_room, note.n_descsz};
      at = name + name_room + text_room;
    }
  }
  return {};
}

}  // namespace coir
