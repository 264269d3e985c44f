// Which revision a server speaks, as client_state.h declares it. A modern server knows server/discover; whoever answers
// that by anything but a modern error is asked to `initialize` a session.
#include <coir/cancel_scope.h>

#include <cstring>

#include "mcp/client/client_state.h"
#include "mcp/client/envelope.h"
#include "mcp/client/program.h"

namespace coir::mcp::detail {

namespace {

enum class Found : std::uint8_t { modern, legacy, neither };

// found_in tells which revisions of a list of a server's we speak.
Found found_in(JsonView versions) noexcept {
  Found found = Found::neither;
  if (versions.kind() != JsonKind::array) return found;
  for (const JsonView each : versions.elements()) {
    const auto text = each.kind() == JsonKind::text ? each.text() : std::unexpected(Error{});
    const auto version = text ? find_version(*text) : std::nullopt;
    if (!version) continue;
    if (era_of(*version) == Era::modern) return Found::modern;
    found = Found::legacy;
  }
  return found;
}

// judge_probe tells what a probe has found out; neither: its outcome is the request's.
Found judge_probe(const Outcome& probe) noexcept {
  if (probe.reply && probe.reply->kind == MessageKind::result) {
    const JsonView result = probe.reply->document.root()["result"];
    if (const auto versions = result.find("supportedVersions")) return found_in(*versions);
    return Found::legacy;  // of a server that answers whatever it is asked
  }
  if (probe.reply) {
    const int code = error_code(*probe.reply);
    if (code == kHeaderMismatch || code == kMissingCapability) return Found::neither;
    if (code == kUnsupportedVersion) {
      return found_in(probe.reply->document.root()["error"]["data"]["supported"]);
    }
  }
  const int status = probe.status;
  if (status == 401 || status == 403 || status == 407 || status == 408 || status == 429 || status >= 500) {
    return Found::neither;
  }
  return status != 0 || probe.reply ? Found::legacy : Found::neither;
}

Outcome probe(McpClientState& state, Agreement& trial) noexcept {
  const McpRequest request{.method = "server/discover"};
  const CallOptions options;
  Ask ask{.request = request, .options = options};
  trial.version = Version::v2026_07_28;
  if (state.http) return send_once(state, trial, ask);
  CancelScope scope(Deadline::after(state.options.probe_timeout));
  Outcome outcome = send_once(state, trial, ask);
  // Some old programs are silent before they are initialized.
  if (!outcome.reply && outcome.error == ErrorCode::timed_out && scope.caused(outcome.error)) outcome.status = 404;
  return outcome;
}

std::optional<Version> agreed_version(const ReplyBlock& hello) noexcept {
  const auto text = hello.document.root()["result"]["protocolVersion"].text();
  if (!text) return std::nullopt;
  // Programs speak it still; what we use of it is the same.
  if (*text == "2024-11-05") return Version::v2025_03_26;
  const auto version = find_version(*text);
  return version && era_of(*version) == Era::legacy ? version : std::nullopt;
}

[[gnu::noinline]] Outcome initialize(McpClientState& state, Agreement& trial) noexcept {
  GrowingText params;
  {
    JsonWriter out(params);
    out.object().member("protocolVersion", version_text(kNewestLegacy)).name("capabilities");
    write_capabilities(out, offered(state.options));
    out.name("clientInfo").object();
    out.member("name", state.options.name).member("version", state.options.version).end().end();
    if (auto written = out.finish(); !written) return Outcome::of(written.error());
  }
  const McpRequest request{.method = "initialize", .params = params.view()};
  const CallOptions options;
  Ask ask{.request = request, .options = options};
  trial.version.reset();
  trial.name_bytes = 0;
  Outcome outcome = send_once(state, trial, ask, &trial);
  if (!outcome.answered()) return outcome;
  trial.version = agreed_version(*outcome.reply);
  if (!trial.version) return Outcome::of(ErrorCode::unsupported);
  const Error told = notify(state, trial, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  if (told.code != ErrorCode{}) {
    trial.version.reset();
    return Outcome::of(told);
  }
  state.hello = std::move(outcome.reply);
  return {};
}

bool known(McpClientState& state, Agreement& into) noexcept {
  const Locked locked(state.lock);
  into = state.session;
  return into.version.has_value();
}

}  // namespace

Outcome agree(McpClientState& state, Agreement& into) noexcept {
  if (known(state, into)) return {};
  auto held = state.negotiating.lock();
  if (!held) return Outcome::of(held.error());
  if (known(state, into)) return {};
  if (state.program != nullptr) {
    const auto instance = state.program->await_start();
    if (!instance) return Outcome::of(instance.error());
    into.instance = *instance;
  }
  Outcome outcome = probe(state, into);
  const Found found = judge_probe(outcome);
  if (found == Found::legacy) {
    outcome = initialize(state, into);
  } else if (found == Found::neither) {
    into.version.reset();
    if (outcome.answered() || (outcome.reply && error_code(*outcome.reply) == kUnsupportedVersion)) {
      outcome = Outcome::of(ErrorCode::unsupported);
    }
  }
  if (!into.version) return outcome;
  state.counters.sessions.fetch_add(1, std::memory_order_relaxed);
  const Locked locked(state.lock);
  ++into.generation;
  state.session = into;
  return {};
}

void forget(McpClientState& state, std::uint32_t generation) noexcept {
  const Locked locked(state.lock);
  if (state.session.generation != generation) return;
  state.session.version.reset();
  state.session.name_bytes = 0;
}

}  // namespace coir::mcp::detail
