#include "announcing.h"

#include <coir/program.h>
#include <coir/stack_size.h>

#include <span>

#include "complaint.h"

#if COIR_MDNS
#include <coir/net/mdns.h>
#endif

using coir::operator""_KiB;

void Announced::take(std::string_view address, std::uint16_t port, bool tls) noexcept {
  if (address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("unix:")) return;
  std::uint16_t& into = tls ? https : http;
  if (into == 0) into = port;
}

#if COIR_MDNS && !COIR_NO_ASYNC

bool take_mdns(const Setting& setting, Options& options) noexcept {
  if (const char* bad = coir::mdns::bad_name(setting.text)) return setting.wrong("coird --help explains --mdns", {bad});
  options.mdns = setting.text;
  return true;
}

Announcing::Announcing(const Options& options, const Announced& ports) noexcept : name_(options.mdns), ports_(ports) {
  if (name_ == nullptr) return;
  fiber_ = coir::spawn({.name = "mdns", .stack = 8_KiB}, [this] { answer(); });
  if (!fiber_.started()) warn({"--mdns ", name_, ": ", fiber_.error()});
}

void Announcing::leave() const noexcept {
  if (name_ != nullptr && fiber_.started()) static_cast<void>(fiber_.cancel("coird stops"));
}

Announcing::~Announcing() {
  if (name_ == nullptr || !fiber_.started()) return;
  leave();
  static_cast<void>(fiber_.join());
}

void Announcing::answer() const noexcept {
  static constexpr std::string_view kText[] = {"path=/"};
  coir::mdns::Service services[2];
  std::size_t count = 0;
  if (ports_.http != 0) services[count++] = {.type = "_http._tcp", .port = ports_.http, .text = kText};
  if (ports_.https != 0) services[count++] = {.type = "_https._tcp", .port = ports_.https, .text = kText};
  if (count == 0)
    warn({"--mdns ", name_,
          ": no listener can be reached from elsewhere, so only the name is announced; --listen '*:8080' is one"});
  const auto named = [](std::string_view name) { say({"found as ", name, ".local"}); };
  const auto served = coir::mdns::serve({.name = name_, .services = std::span(services).first(count), .named = named});
  if (served.error() == coir::ErrorCode::cancelled) return;
  warn({"--mdns ", name_, ": ", served.error(), ": the name is not announced"});
}

#else

Announcing::Announcing(const Options&, const Announced&) noexcept {}
Announcing::~Announcing() = default;
void Announcing::leave() const noexcept {}

#endif
