// A firmware image through a browser's form, straight into a file: whatever its size, the handler holds one buffer. The
// file has its old content or all of the new one. The browser here is coir's own client.

#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/client.h>
#include <coir/http/content.h>
#include <coir/http/routes.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "local_site.h"

using namespace coir::http;

namespace {

constexpr std::size_t kImage = 3'000'000;

struct Store {
  char folder[32] = "/tmp/coir-uploads.XXXXXX";
  char image[64];
};

void page(Exchange& exchange) {
  exchange.respond(200, "text/html",
                   "<!doctype html><form method=post enctype=multipart/form-data>\n"
                   "<input name=version><input name=image type=file><button>install</button></form>\n");
}

void install(Store& store, Exchange& exchange) {
  Multipart form(exchange, exchange.scratch());
  char version[32] = "?";
  std::uint64_t stored = 0;
  for (;;) {
    const auto part = form.next();
    if (!part && part.error() == coir::ErrorCode::end_of_stream) break;
    if (!part) return;  // it has been answered
    if (part->name == "version") {
      const auto text = form.read_all(std::span(version).first(sizeof version - 1));
      if (!text) return;
      version[text->size()] = '\0';
    } else if (part->name == "image") {
      const auto saved = form.save(store.image);
      if (!saved) return;
      stored = *saved;
    }
  }
  char text[80];
  exchange.respond(200, "text/plain", coir::format(text, "version ", version, ", ", stored, " bytes"));
}

// Browser sends its form, made while it is sent.
struct Browser : Upload {
  static constexpr std::string_view kHead =
      "--edge\r\nContent-Disposition: form-data; name=\"version\"\r\n\r\n1.2\r\n"
      "--edge\r\nContent-Disposition: form-data; name=\"image\"; filename=\"board.img\"\r\n\r\n";
  static constexpr std::string_view kTail = "\r\n--edge--\r\n";

  Browser() {
    read = make;
    size = kHead.size() + kImage + kTail.size();
  }
  static std::expected<std::size_t, coir::Error> make(Upload& self, std::span<char> into) noexcept {
    std::size_t& at = static_cast<Browser&>(self).at;
    std::size_t made = 0;
    for (; made < into.size() && at < *self.size; ++made, ++at) {
      into[made] = at < kHead.size()            ? kHead[at]
                   : at < kHead.size() + kImage ? '\x7f'
                                                : kTail[at - kHead.size() - kImage];
    }
    return made;
  }
  std::size_t at = 0;
};

}  // namespace

int main() {
  Store store;
  if (mkdtemp(store.folder) == nullptr) return 1;
  coir::format(store.image, store.folder, "/board.img", '\0');
  auto app = routes(get<"/">(page), post<"/">([&](Exchange& exchange) { install(store, exchange); }));
  const int status = coir::run([&] {
    const LocalSite site(answered_by(app, {.limits = {.max_body = 16 * 1024 * 1024}}));
    Browser form;
    auto response = post(site.url("/"), {}, "multipart/form-data; boundary=edge", {.upload = &form});
    if (!response) return 1;
    const auto text = response->text();
    auto image = coir::File::open(store.image);
    const auto size = image ? image->size() : std::unexpected(image.error());
    if (!text || !size) return 1;
    coir::on_worker_stack([&] {
      printf("%d: %.*s\n", response->status(), static_cast<int>(text->size()), text->data());
      printf("the file has %llu\n", static_cast<unsigned long long>(*size));
    });
    return 0;
  });
  unlink(store.image);
  rmdir(store.folder);
  return status;
}
