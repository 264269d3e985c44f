#include <coir/format.h>

#include "mcp/server/incoming.h"

namespace coir::mcp {

// results.cpp: how incoming.h's requests are answered.

namespace {

void put_id(Text& out, const MessageId& id) noexcept {
  char digits[24];
  if (id.is_text) {
    put_quoted(out, id.text);
  } else {
    put(out, format(digits, id.number));
  }
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
  char room[512];
  Text out(room, 16 * 1024);
  put(out, R"({"jsonrpc":"2.0","id":)");
  put_id(out, in.message.id);
  char begin[40];
  put(out, format(begin, R"(,"error":{"code":)", code));
  put(out, R"(,"message":)");
  put_quoted(out, message);
  if (!data.empty()) {
    put(out, R"(,"data":)");
    put(out, data);
  }
  put(out, "}}");
  // The legacy era tells errors by 200.
  in.reply.finish(in.era() == Era::legacy && status != 503 ? 200 : status,
                  out.failed() ? std::string_view("{}") : out.view());
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
