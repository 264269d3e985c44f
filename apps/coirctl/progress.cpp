#include "progress.h"

#include <coir/deadline.h>
#include <coir/format.h>
#include <unistd.h>

namespace {

constexpr std::size_t kBar = 30;
constexpr std::string_view kFull = "##############################";
constexpr std::string_view kEmpty = "                              ";
static_assert(kFull.size() == kBar && kEmpty.size() == kBar);

}  // namespace

Progress::Progress(bool wanted, std::uint64_t have, std::optional<std::uint64_t> total) noexcept
    : shown_(wanted && ::isatty(STDERR_FILENO) != 0),
      have_(have),
      began_with_(have),
      total_(total),
      began_ns_(coir::monotonic_ns()) {}

Progress::~Progress() {
  if (!shown_) return;
  draw();
  static_cast<void>(!::write(STDERR_FILENO, "\n", 1));
}

void Progress::add(std::uint64_t bytes) noexcept {
  have_ += bytes;
  if (!shown_ || coir::monotonic_ns() - drawn_ns_ < 100'000'000) return;
  draw();
}

void Progress::draw() noexcept {
  drawn_ns_ = coir::monotonic_ns();
  const auto elapsed_ms = static_cast<std::uint64_t>((drawn_ns_ - began_ns_) / 1'000'000) + 1;
  const std::uint64_t rate = (have_ - began_with_) * 1000 / elapsed_ms;
  char line[160];
  coir::Formatter out(line);
  out.add("\r");
  if (total_ && *total_ != 0) {
    const std::uint64_t share = have_ < *total_ ? have_ * 100 / *total_ : 100;
    const auto full = static_cast<std::size_t>(share * kBar / 100);
    out.add(coir::right(share, 3), "% [", std::string_view(kFull.data(), full),
            std::string_view(kEmpty.data(), kBar - full), "] ");
  }
  out.add(coir::byte_size(have_));
  if (total_) out.add(" of ", coir::byte_size(*total_));
  out.add(", ", coir::byte_size(rate), "/s    ");
  static_cast<void>(!::write(STDERR_FILENO, out.text().data(), out.text().size()));
}
