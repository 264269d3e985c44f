#include "listeners.h"

#include <errno.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "complaint.h"

namespace {

// AddressText is an address as text.
class AddressText {
 public:
  explicit AddressText(const coir::Address& address) noexcept : text_(address.format(room_)) {}
  std::string_view text() const noexcept { return text_; }

 private:
  char room_[coir::Address::kMaxText];
  std::string_view text_;
};

bool same_address(const Options::Listen& a, const Options::Listen& b) noexcept {
  return AddressText(a.address).text() == AddressText(b.address).text();
}

bool same_kind(const Options::Listen& a, const Options::Listen& b) noexcept {
  return a.tls == b.tls && a.metrics == b.metrics;
}

// may_be_twice tells whether the kernel chooses a port, another one each time.
bool may_be_twice(const coir::Address& address) noexcept {
  return address.family() != coir::Address::Family::unix_path && address.port() == 0;
}

bool cannot_listen(const Options::Listen& at, coir::Error error, bool reloads = false) noexcept {
  // The options at the start decide which rights coird keeps.
  const bool lacks_rights = reloads && error.sys == EACCES;
  if (at.setting != nullptr && at.setting->file != nullptr)
    return at.setting->wrong(lacks_rights ? "restart coird" : "name a free address of this machine",
                             {"cannot listen there: ", error});
  warn({"cannot listen on ", AddressText(at.address).text(), ": ", error});
  return false;
}

std::uint8_t mark_of(const Options::Listen& at) noexcept {
  return at.metrics ? Listeners::kMetrics : std::uint8_t{0};
}

// bind_address binds an address that no interface has yet, too: a USB link's, for one, is set after coird has started.
std::expected<coir::TcpListener, coir::Error> bind_address(const Options::Listen& at, const Options& options) noexcept {
  // A slow client must not fill the kernel's memory with a response that it reads little by little.
  coir::TcpListener::Options wanted = {.backlog = options.backlog, .unsent_bytes = 128 * 1024};
  auto listener = coir::TcpListener::listen(at.address, wanted);
  if (listener || listener.error().sys != EADDRNOTAVAIL) return listener;
  wanted.before_address = true;
  listener = coir::TcpListener::listen(at.address, wanted);
  if (listener) say({"no interface has ", AddressText(at.address).text(), " yet: clients are served once one has it"});
  return listener;
}

}  // namespace

Listeners::Match Listeners::match(const Options& options) const noexcept {
  Match match;
  std::ranges::fill(match.of, kNew);
  // The same address of another kind comes second: "127.0.0.1:0" may be there several times.
  for (const bool of_a_kind : {true, false}) {
    for (std::size_t i = 0; i < options.listen_count; ++i) {
      const Options::Listen& wanted = options.listen[i];
      for (std::size_t k = 0; k < kMost && match.of[i] == kNew; ++k) {
        const Serving& each = serving_[k];
        if (!each.used || match.stays[k] || !same_address(each.at, wanted)) continue;
        if (same_kind(each.at, wanted) != of_a_kind || (!of_a_kind && may_be_twice(wanted.address))) continue;
        match.stays[k] = true;
        match.of[i] = of_a_kind ? k : kNextStart;
      }
      if (!of_a_kind && match.of[i] == kNew && wanted.tls && serves_ && !tls_) match.of[i] = kNextStart;
    }
  }
  return match;
}

// is_in_the_way tells of a listener that the options no longer name, by whose port an address may be covered.
bool Listeners::is_in_the_way(const Match& found, std::size_t k, const coir::Address& wanted) const noexcept {
  constexpr auto kUnix = coir::Address::Family::unix_path;
  const Serving& each = serving_[k];
  return each.used && !found.stays[k] && wanted.family() != kUnix && each.bound.family() != kUnix &&
         wanted.port() == each.bound.port();
}

// release closes what is in the way of an address.
void Listeners::release(const Match& found, const coir::Address& wanted, OpenedListeners& opened,
                        coir::http::Server& server) noexcept {
  for (std::size_t k = 0; k < kMost; ++k) {
    if (opened.released[k] || !is_in_the_way(found, k, wanted)) continue;
    server.remove(serving_[k].number);
    opened.released[k] = true;
  }
}

bool Listeners::open(const Options& options, OpenedListeners& opened, coir::http::Server* server,
                     coir::TlsContextSlot* tls) noexcept {
  const Match found = match(options);
  bool for_all = false;  // an address that is not for metrics alone
  for (const bool releases : {false, true}) {
    if (releases && server == nullptr) break;
    for (std::size_t i = 0; i < options.listen_count; ++i) {
      const Options::Listen& wanted = options.listen[i];
      if (found.of[i] != kNew || opened.at[i].is_open()) continue;
      // The default address, which is the last one in safe mode.
      if (options.safe && for_all && wanted.setting == nullptr) continue;
      if (releases) release(found, wanted.address, opened, *server);
      auto listener = bind_address(wanted, options);
      if (listener) {
        opened.at[i] = std::move(*listener);
        for_all |= !wanted.metrics;
        continue;
      }
      // Any other error, such as that of a port which needs privileges, would come again: then nothing is released.
      if (!releases && server != nullptr && listener.error().sys == EADDRINUSE) {
        bool may_be_released = false;
        for (std::size_t k = 0; k < kMost; ++k) may_be_released |= is_in_the_way(found, k, wanted.address);
        if (may_be_released) continue;
      }
      cannot_listen(wanted, listener.error(), server != nullptr);
      if (options.safe) continue;
      if (server != nullptr) take_back(options, opened, *server, tls);
      return false;
    }
  }
  return for_all || !options.safe;
}

void Listeners::take_back(const Options& options, OpenedListeners& opened, coir::http::Server& server,
                          coir::TlsContextSlot* tls) noexcept {
  for (std::size_t i = 0; i < kMost; ++i) {
    if (std::exchange(opened.serves[i], false)) server.remove(opened.number[i]);
    opened.at[i].close();
  }
  for (std::size_t k = 0; k < kMost; ++k) {
    if (!std::exchange(opened.released[k], false)) continue;
    Serving& old = serving_[k];
    Options::Listen again = old.at;
    if (may_be_twice(again.address)) again.address = old.bound;  // the port that was chosen then
    auto listener = bind_address(again, options);
    const auto added = listener ? server.add(std::move(*listener), old.at.tls ? tls : nullptr, mark_of(old.at))
                                : std::unexpected(listener.error());
    old.used = added.has_value();
    if (added) old.number = *added;
    if (!added)
      complain("restart coird", {"no longer listening on ", AddressText(old.bound).text(), ": ", added.error()});
  }
}

bool Listeners::serve(const Options& options, OpenedListeners& opened, coir::http::Server& server,
                      coir::TlsContextSlot* tls) noexcept {
  const Match found = match(options);
  auto wanted_places = static_cast<std::size_t>(std::ranges::count_if(opened.at, &coir::TcpListener::is_open));
  for (std::size_t k = 0; k < kMost; ++k) wanted_places += serving_[k].used && !opened.released[k] ? 1 : 0;
  for (std::size_t k = 0; k < kMost && wanted_places > kMost; ++k) {
    if (!serving_[k].used || found.stays[k] || opened.released[k]) continue;
    server.remove(serving_[k].number);
    opened.released[k] = true;
    --wanted_places;
  }
  for (std::size_t i = 0; i < options.listen_count; ++i) {
    if (!opened.at[i].is_open()) continue;
    const Options::Listen& wanted = options.listen[i];
    opened.bound[i] = opened.at[i].local_address();
    const auto added = server.add(std::move(opened.at[i]), wanted.tls ? tls : nullptr, mark_of(wanted));
    if (!added) {
      cannot_listen(wanted, added.error());
      take_back(options, opened, server, tls);
      return false;
    }
    opened.serves[i] = true;
    opened.number[i] = *added;
  }
  return true;
}

void Listeners::settle(const Options& options, OpenedListeners& opened, coir::http::Server& server) noexcept {
  const Match found = match(options);
  for (std::size_t k = 0; k < kMost; ++k) {
    if (!serving_[k].used || found.stays[k]) continue;
    if (!opened.released[k]) server.remove(serving_[k].number);
    serving_[k].used = false;
    say({"no longer listening on ", AddressText(serving_[k].at.address).text()});
  }
  for (std::size_t i = 0; i < options.listen_count; ++i) {
    const Options::Listen& wanted = options.listen[i];
    if (found.of[i] == kNextStart && wanted.setting != nullptr)
      wanted.setting->wrong("restart coird", {"takes effect after a restart"});
    if (!opened.serves[i]) continue;
    Serving& place = *std::ranges::find(serving_, false, &Serving::used);
    place = {.at = wanted, .bound = opened.bound[i], .used = true, .number = opened.number[i]};
    place.at.setting = nullptr;  // which may be gone before the listener
    tls_ = tls_ || wanted.tls;
    const AddressText local(place.bound);
    if (!serves_ && !wanted.metrics) ports_.take(local.text(), place.bound.port(), wanted.tls);
    say({wanted.metrics ? "metrics" : "listening", " on ", local.text(), wanted.tls ? " with TLS" : ""});
  }
  // In safe mode an address for metrics may be left out: then no other one shows them.
  metrics_apart_.store((options.safe && options.metrics_apart) ||
                       std::ranges::any_of(serving_, [](const Serving& each) { return each.used && each.at.metrics; }));
  serves_ = true;
}
