#pragma once

#include "../options/options.h"

// --mcp-mount needs the client besides.
#define COIRD_MOUNTS (COIRD_MCP && COIR_CLIENT && COIR_STREAMS)

#if COIRD_MOUNTS
#include <coir/fiber.h>
#include <coir/mcp/gateway.h>

#include <optional>
#include <span>

// Mounts are the servers of --mcp-mount, whose tools are offered as ours.
class Mounts {
 public:
  Mounts() noexcept = default;
  Mounts(const Mounts&) = delete;
  Mounts& operator=(const Mounts&) = delete;

  // open prepares what the options name; nobody is asked yet. `told` hears of what has changed. False: one
  // line has said why not.
  [[nodiscard]] bool open(const Options& options, const coir::mcp::GatewayOptions& told) noexcept;

  // sources is empty where nothing is mounted.
  std::span<coir::mcp::Source* const> sources() const noexcept { return {&source_, source_ != nullptr ? 1u : 0u}; }

  // start connects to the servers, and keeps them connected until stop. From a fiber.
  void start() noexcept;
  void stop() noexcept;

 private:
  static constexpr std::size_t kMostWords = 16;
  static constexpr std::size_t kMostText = 512;
  static constexpr std::size_t kMost = 8;

  // Command is a program's words, parted at blanks.
  struct Command {
    char text[kMostText] = {};
    const char* words[kMostWords + 1] = {};
  };
  static bool part(std::string_view text, Command& into) noexcept;

  Command commands_[kMost];
  coir::mcp::Mount mounts_[kMost];
  std::optional<coir::mcp::Gateway> gateway_;
  coir::mcp::Source* source_ = nullptr;
  coir::Fiber fiber_;
};
#endif
