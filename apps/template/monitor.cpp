#include "monitor.h"

#include <coir/every.h>
#include <coir/format.h>

using coir::Deadline;
using Outcome = std::expected<void, coir::Error>;

std::string_view write_json(const Reading& reading, std::span<char> room) noexcept {
  return coir::format(room, "{\"number\":", reading.number, ",\"celsius\":", coir::fixed(reading.value, 3), "}");
}

void Monitor::take() noexcept {
  const std::optional<Millidegrees> value = sensor_.read();
  if (!value) {
    counts_.failed.fetch_add(1);
    return;
  }
  const Reading reading{.number = counts_.taken.fetch_add(1) + 1, .value = *value};
  if (!queue_.send(reading, Deadline::now())) counts_.dropped.fetch_add(1);
}

Outcome Monitor::measure(std::chrono::milliseconds interval) noexcept {
  take();
  return coir::every(interval, [this] { take(); });
}

Outcome Monitor::publish() noexcept {
  for (;;) {
    const auto reading = queue_.receive();
    if (!reading) return std::unexpected(reading.error());
    {
      const coir::Locked locked(lock_);
      newest_ = *reading;
    }
    // The number is the event's id: a follower that was away resumes behind the last one that it has seen.
    char id[24], text[64];
    static_cast<void>(
        followers_.publish({.data = write_json(*reading, text), .id = coir::format(id, reading->number)}));
  }
}

std::optional<Reading> Monitor::newest() const noexcept {
  const coir::Locked locked(lock_);
  return newest_.number != 0 ? std::optional(newest_) : std::nullopt;
}
