// Files are read and written on threads of their own while the fiber parks, so that a slow disk holds up nobody else. A
// setting is replaced whole: whoever opens the file finds the old content or the new one, after a loss of power too.

#include <coir/fiber.h>
#include <coir/file.h>
#include <coir/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

namespace {

using Bytes = std::expected<std::size_t, coir::Error>;

constinit coir::Account texts("texts");  // what may be held of files in memory

// copy copies through a buffer of the caller's and returns how many bytes.
Bytes copy(const char* from, const char* to, std::span<char> buffer) {
  const auto source = coir::File::open(from);
  if (!source) return std::unexpected(source.error());
  auto target = coir::File::open(to, {.write = true, .create = true, .truncate = true});
  if (!target) return std::unexpected(target.error());
  std::size_t copied = 0;
  for (;;) {
    const Bytes piece = source->read_at(buffer, copied);
    if (!piece && piece.error() == coir::ErrorCode::end_of_stream) break;
    if (!piece) return piece;
    if (auto written = target->write_all(buffer.first(*piece)); !written) return std::unexpected(written.error());
    copied += *piece;
  }
  // The content is on the disk before anybody is told so.
  if (auto synced = target->sync(); !synced) return std::unexpected(synced.error());
  if (auto closed = target->close(); !closed) return std::unexpected(closed.error());
  return copied;
}

std::expected<void, coir::Error> work_in(const char* folder) {
  const auto path = [folder](const char* name, char(&text)[200]) {
    snprintf(text, sizeof text, "%s/%s", folder, name);
    return text;
  };
  char original[200], duplicate[200], none[200], settings[200];
  path("original", original);
  path("duplicate", duplicate);
  path("none", none);
  path("settings", settings);

  static char many[100'000];
  memset(many, 'x', sizeof many);
  if (auto made = coir::replace_file(original, many); !made) return made;

  static char buffer[4096];
  const Bytes copied = copy(original, duplicate, buffer);
  if (!copied) return std::unexpected(copied.error());
  printf("copied %zu bytes\n", *copied);

  const auto file = coir::File::open(duplicate);
  if (!file) return std::unexpected(file.error());
  const auto whole = file->read_all(texts, 1 << 20);
  if (!whole) return std::unexpected(whole.error());
  printf("the copy is %s\n", whole->text() == std::string_view(many, sizeof many) ? "the same" : "another");

  const Bytes missing = copy(none, duplicate, buffer);
  printf("a copy of nothing: %s\n", missing ? "done" : coir::describe(missing.error()));

  for (const std::string_view text : {std::string_view("channel=1\n"), std::string_view("channel=6\nname=attic\n")}) {
    if (auto replaced = coir::replace_file(settings, text); !replaced) return replaced;
  }
  const auto saved = coir::File::open(settings);
  if (!saved) return std::unexpected(saved.error());
  coir::FileLines lines(*saved, std::span(buffer).first(80));
  while (auto line = lines.next()) printf("settings: %.*s\n", static_cast<int>(line->size()), line->data());

  for (const char* each : {original, duplicate, settings}) unlink(each);
  return {};
}

}  // namespace

int main() {
  char folder[] = "/tmp/coir-copy.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const int status = coir::run([&] { return work_in(folder); });
  rmdir(folder);
  return status;
}
