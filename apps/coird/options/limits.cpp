#include "limits.h"

#include <coir/config.h>
#include <coir/http/server.h>
#include <coir/net/stream.h>
#include <coir/program.h>
#include <coir/quantity.h>

#include <string_view>

#include "take.h"

#if COIR_TLS
#include <coir/tls.h>
#endif
#if COIRD_MCP
#include <coir/mcp.h>
#endif

// take_memory takes "8M" for the total, or "http=1M" for an account.
bool take_memory(const Setting& setting, Options& options) noexcept {
  static constexpr coir::Account* kAccounts[] = {
      &coir::account::connections, &coir::account::http,       &coir::account::stacks, &coir::account::files,
#if COIR_TLS
      &coir::account::tls,         &coir::account::handshakes,
#endif
#if COIRD_MCP
      &coir::account::mcp,
#endif
  };
  std::string_view size = setting.text;
  coir::Account* account = nullptr;
  if (const std::size_t equals = size.find('='); equals != size.npos) {
    for (coir::Account* known : kAccounts) {
      if (size.substr(0, equals) == known->name()) account = known;
    }
    if (account == nullptr)
      return setting.wrong({"the accounts are connections, http, stacks, files, tls, handshakes and mcp"});
    size.remove_prefix(equals + 1);
  }
  const auto bytes = coir::parse_size(size);
  if (!bytes || *bytes == 0) return setting.wrong({"not a size such as 512K or 8M"});
  if (account == nullptr) {
    options.memory = static_cast<std::size_t>(*bytes);
    return true;
  }
  if (options.account_count == Options::kMaxCeilings) return setting.wrong({"more than ", Options::kMaxCeilings});
  options.accounts[options.account_count++] = {account, static_cast<std::size_t>(*bytes)};
  return true;
}

bool take_keep_free(const Setting& setting, Options& options) noexcept {
  return options.reserve_given = take_number<&Options::reserve>(setting, options);
}

bool take_max_connections(const Setting& setting, Options& options) noexcept {
  return options.connections_given = take_number<&coir::http::ServerOptions::max_connections>(setting, options);
}

bool take_max_active(const Setting& setting, Options& options) noexcept {
  const auto value = setting.number();
  if (!value) return false;
  if (!coir::kFibers && *value > 1) return setting.wrong({"this build has no fibers and serves one request at a time"});
  options.server.max_active = static_cast<std::size_t>(*value);
  return options.active_given = true;
}

bool take_trace(const Setting& setting, Options& options) noexcept {
  if (!setting.names_file()) return false;
  if (!coir::tracing()) return setting.wrong({"this build has no tracing"});
  options.trace = setting.text;
  return true;
}
