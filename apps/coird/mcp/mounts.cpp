#include "mounts.h"

#if COIRD_MOUNTS

#include <coir/stack_size.h>
#include <string.h>

#include <algorithm>

#include "../complaint.h"

using coir::operator""_KiB;

namespace {

constexpr const char* kMountForm = "such as home=http://192.168.1.9:8080/mcp or notes=/usr/bin/notes --mcp";

}  // namespace

bool Mounts::part(std::string_view text, Command& into) noexcept {
  if (text.size() >= sizeof into.text) return false;
  memcpy(into.text, text.data(), text.size());
  std::size_t count = 0;
  for (char* at = into.text; *at != '\0';) {
    if (*at == ' ') {
      *at++ = '\0';
      continue;
    }
    if (count == kMostWords) return false;
    into.words[count++] = at;
    at += strcspn(at, " ");
  }
  return count != 0;
}

bool Mounts::open(const Options& options, const coir::mcp::GatewayOptions& told) noexcept {
  const auto& given = options.mcp.mounts;
  const std::size_t count = given.count;
  if (count == 0) return true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view text = given.texts[i];
    const std::size_t equals = text.find('=');
    const std::string_view where = text.substr(equals + 1);
    coir::mcp::Mount& mount = mounts_[i];
    mount.prefix = text.substr(0, equals);
    mount.upstream.name = "coird";
    if (is_web_url(where)) {
      mount.upstream.url = where;
    } else if (part(where, commands_[i])) {
      const auto& words = commands_[i].words;
      const auto end = std::find(std::begin(words), std::end(words), nullptr);
      mount.upstream.command = {words, static_cast<std::size_t>(end - words) + 1};
    } else {
      return options.wrong("mcp-mount", text.data(), kMountForm, {"not a command of up to ", kMostWords, " words"});
    }
  }
  auto made = coir::mcp::Gateway::create(std::span(mounts_, count), told);
  if (!made) return options.wrong("mcp-mount", given.texts[0].data(), kMountForm, {made.error()});
  gateway_.emplace(std::move(*made));
  source_ = &gateway_->source();
  return true;
}

void Mounts::start() noexcept {
  if (!gateway_) return;
  fiber_ = coir::spawn({.name = "mcp mounts", .stack = 16_KiB}, [this] {
    if (auto ran = gateway_->run(); !ran) warn({"--mcp-mount: ", ran.error()});
  });
  if (!fiber_.started()) warn({"--mcp-mount: ", fiber_.error()});
}

void Mounts::stop() noexcept {
  if (!gateway_ || !fiber_.started()) return;
  gateway_->close();
  static_cast<void>(fiber_.join());
}

#endif
