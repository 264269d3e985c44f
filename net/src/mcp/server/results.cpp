#include <coir/format.h>

#include "mcp/server/incoming.h"

namespace coir::mcp {

// results.cpp: how incoming.h's requests are answered.

namespace {

constexpr std::size_t kBriefMessage = 64;  // whose characters may be six each as JSON

void put_id(Text& out, const MessageId& id) noexcept {
  char digits[24];
  if (id.is_text) {
    put_quoted(out, id.text);
  } else {
    put(out, format(digits, id.number));
  }
}

[[gnu::noinline]] void put_error(Text& out, const MessageId& id, int code, std::string_view message,
                                 std::string_view data) noexcept {
  put(out, R"({"jsonrpc":"2.0","id":)");
  put_id(out, id);
  char begin[40];
  put(out, format(begin, R"(,"error":{"code":)", code));
  put(out, R"(,"message":)");
  put_quoted(out, message);
  if (!data.empty()) {
    put(out, R"(,"data":)");
    put(out, data);
  }
  put(out, "}}");
}

}  // namespace

void put_quoted(Text& out, std::string_view text) noexcept {
  const std::size_t size = format_length(json_quoted(text));
  char* const to = out.take(size);
  if (to != nullptr) format({to, size}, json_quoted(text));
}

void member(Text& out, std::string_view name) noexcept {
  if (!out.failed() && out.view().back() != '{') put(out, ",");
  put(out, "\"");
  put(out, name);
  put(out, "\":");
}

void begin_result(const Incoming& in, Text& out, std::string_view type) noexcept {
  put(out, R"({"jsonrpc":"2.0","id":)");
  put_id(out, in.message.id);
  if (in.era() == Era::legacy) return put(out, R"(,"result":{)");
  put(out, R"(,"result":{"resultType":")");
  put(out, type);
  put(out, R"(","_meta":{"io.modelcontextprotocol/serverInfo":)");
  put(out, in.core.server_info());
  put(out, "}");
}

void cacheable(const Incoming& in, Text& out, std::int64_t lifetime_ms, bool is_private) noexcept {
  if (in.era() == Era::legacy) return;
  char digits[24];
  member(out, "ttlMs");
  put(out, format(digits, lifetime_ms));
  member(out, "cacheScope");
  put(out, is_private ? R"("private")" : R"("public")");
}

void end_result(const Incoming&, Text& out) noexcept {
  put(out, "}}");
}

void send_result(Incoming& in, Text& out) noexcept {
  if (!out.failed()) return in.reply.finish(200, out.view());
  const bool large = out.failure() == ErrorCode::limit;
  in.outcome = large ? "too large" : "no memory";
  refuse(in, large ? 200 : 503, large ? kTooLarge : kBusy,
         large ? "the result is larger than this server allows" : kNoMemory);
}

void refuse(Incoming& in, int status, int code, std::string_view message, std::string_view data) noexcept {
  in.code = code;
  if (in.outcome == "ok") in.outcome = "refused";
  // The legacy era tells errors by 200.
  if (in.era() == Era::legacy && status != 503) status = 200;
  char room[512];
  Text whole(room, in.core.options.max_result_bytes);
  put_error(whole, in.message.id, code, message, data);
  if (!whole.failed()) return in.reply.finish(status, whole.view());
  // An error that is too long, or for which there is no memory, ends the client's request all the same.
  Text brief(room, sizeof room);
  char words[kBriefMessage];
  put_error(brief, in.message.id, code, format(words, cut(message, sizeof words)), {});
  in.reply.finish(status, brief.failed() ? std::string_view("{}") : brief.view());
}

void answer_plain(http::Exchange& exchange, int status, const MessageId& id, int code, std::string_view message,
                  std::string_view data, std::string_view fields) noexcept {
  char room[256];
  JsonText text(room);
  {
    JsonWriter out(text);
    write_error(out, id, code, message, data);
    if (!out.finish()) return exchange.respond_status(status, fields);
  }
  exchange.respond(status, "application/json", text.view(), fields);
}

void audited(const Incoming& in, std::int64_t began_ns) noexcept {
  if (!in.core.options.audit) return;
  in.core.options.audit({.who = in.who.name(),
                         .method = in.message.method,
                         .name = in.name,
                         .outcome = in.outcome,
                         .code = in.code,
                         .took = std::chrono::milliseconds((monotonic_ns() - began_ns) / 1'000'000)});
}

}  // namespace coir::mcp
