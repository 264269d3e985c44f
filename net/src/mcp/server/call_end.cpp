#include "mcp/server/call_state.h"

namespace coir::mcp {
namespace {

// call_end.cpp: what has come of a call, sent, for call_state.h.

constexpr std::string_view kContents[] = {R"("content":[)", R"("contents":[)", R"("messages":[)",
                                          R"("completion":{"values":[)"};

void begin(CallState& call) noexcept {
  call.begun = true;
  begin_result(call.in, call.out);
  if (!call.out.failed() && call.out.view().back() != '{') put(call.out, ",");
  put(call.out, kContents[static_cast<std::size_t>(call.kind)]);
}

void end_content(CallState& call) noexcept {
  Text& out = call.out;
  if (!call.begun) begin(call);
  put(out, "]");
  switch (call.kind) {
    case CallKind::tool:
      if (call.failed) put(out, R"(,"isError":true)");
      if (call.structured.size() > 0 && call.in.version >= Version::v2025_06_18) {
        put(out, R"(,"structuredContent":)");
        put(out, call.structured.view());
      }
      break;
    case CallKind::resource:
      cacheable(call.in, out, 0, true);
      break;
    case CallKind::prompt:
      if (!call.description.empty()) {
        put(out, R"(,"description":)");
        put_quoted(out, call.description);
      }
      break;
    case CallKind::completion:
      put(out, R"(,"hasMore":false})");
      break;
  }
}

// ask_client answers with what the client is asked for.
void ask_client(CallState& call) noexcept {
  Text& out = call.out;
  call.in.outcome = "asked";
  out.cut(0);
  begin_result(call.in, out, "input_required");
  if (call.questions.size() > 0) {
    member(out, "inputRequests");
    put(out, "{");
    put(out, call.questions.view());
    put(out, "}");
  }
  if (call.kept_state.size() > 0) {
    member(out, "requestState");
    if (!seal_kept_state(call, out)) {
      return refuse(call.in, 200, kInternalError, "this server cannot keep the state of this request");
    }
  }
  end_result(call.in, out);
  send_result(call.in, out);
}

// interrupted answers a call that was ended from outside.
void interrupted(CallState& call, Error error) noexcept {
  Incoming& in = call.in;
  if (error == ErrorCode::timed_out) {
    in.outcome = "timed out";
    return refuse(in, 200, kTimedOut, "the call has taken longer than this server allows");
  }
  in.outcome = "cancelled";
  in.code = kCancelled;
  // Nothing more is sent for what was cancelled; but a request whose answer has not begun gets one: its client may be
  // there still, where the server stops.
  if (!in.reply.streams()) refuse(in, in.era() == Era::modern ? 503 : 200, kCancelled, "the call was cancelled");
}

// has_failed tells whether a text that the answer needs has no room.
bool has_failed(CallState& call) noexcept {
  for (Text* const each : {&call.structured, &call.questions, &call.kept_state}) {
    if (!each->failed()) continue;
    call.in.outcome = "no memory";
    if (each->failure() == ErrorCode::limit) {
      call.in.outcome = "too large";
      refuse(call.in, 200, kTooLarge, "the result is larger than this server allows");
    } else {
      refuse(call.in, 503, kBusy, kNoMemory);
    }
    return true;
  }
  return false;
}

}  // namespace

bool CallState::piece() noexcept {
  if (refused || whole) return false;
  if (!begun) begin(*this);
  if (pieces++ > 0) put(out, ",");
  return !out.failed();
}

void finish_call(CallState& call, std::expected<void, Error> ended) noexcept {
  Incoming& in = call.in;
  if (call.refused) return;
  if (!ended) return interrupted(call, ended.error());
  if (has_failed(call)) return;
  if (!call.whole) {
    const bool asks = in.era() == Era::modern &&
                      (call.questions.size() > 0 || (call.kept_state.size() > 0 && call.pieces == 0 && !call.failed));
    if (asks) return ask_client(call);
    end_content(call);
    end_result(in, call.out);
  }
  if (call.failed) in.outcome = "failed";
  send_result(in, call.out);
}

}  // namespace coir::mcp
