#pragma once

#include <coir/http/detail/detached.h>
#include <coir/http/exchange.h>
#include <coir/mcp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mcp/message/message.h"
#include "mcp/message/text.h"
#include "mcp/server/core.h"

namespace coir::mcp {

// reply.cpp has Reply.
//
// Reply is where the messages that answer a request go: one JSON text, or, from the first notification on, a stream of
// events. A batch gathers its responses. Belongs to the request's fiber.
//
// A legacy stream lives on its own connection from the start, the exchange's session serves others, and what it sends
// is recorded for a client that comes again.
class Reply {
 public:
  Reply(ServerCore& core, http::Exchange& exchange, Session* session, Era era, bool may_stream) noexcept
      : core_(core), exchange_(exchange), session_(session), era_(era), may_stream_(may_stream) {}
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // gather has responses go into a text instead, behind commas.
  void gather(Text& batch) noexcept { batch_ = &batch; }

  // notify sends a notification or a request, which begins a stream. False: the client takes no stream, or it is gone
  // and nobody can come again.
  bool notify(std::string_view json) noexcept;
  // finish sends the response.
  void finish(int status, std::string_view json) noexcept;
  // disconnect closes a legacy stream; its client comes again.
  void disconnect() noexcept;
  // release gives the exchange's place and buffers to others until something is sent; nothing may lie in scratch memory.
  void release() noexcept { exchange_.release_buffer(); }
  bool may_stream() const noexcept { return may_stream_ && batch_ == nullptr; }
  bool streams() const noexcept { return streams_; }

 private:
  bool begin_stream() noexcept;
  bool send(std::string_view json) noexcept;
  bool send_in_pieces(std::string_view json) noexcept;
  bool write(std::string_view bytes) noexcept;

  ServerCore& core_;
  http::Exchange& exchange_;
  Session* session_;
  Era era_;
  bool may_stream_;
  bool streams_ = false;
  bool gone_ = false;
  Text* batch_ = nullptr;
  RecordedStream* stream_ = nullptr;
  std::optional<http::Detached> detached_;
};

struct Posted;

// Incoming is a request being answered.
struct Incoming {
  Posted& posted;
  ServerCore& core;
  const http::Request* request;  // null once a legacy stream has begun
  Reply& reply;
  const Principal& who;
  Version version;
  Session* session;  // legacy
  const Message& message;
  CapabilitySet capabilities = 0;
  std::optional<LogLevel> level = {};
  MessageId progress = {};
  std::span<char> room = {};  // for the response

  // For the audit line.
  std::string_view name = {};
  std::string_view outcome = "ok";
  int code = 0;

  Era era() const noexcept { return era_of(version); }
  std::optional<JsonView> param(std::string_view name_of) const noexcept { return member_of(message.params, name_of); }
};

// Messages of kBusy.
inline constexpr std::string_view kNoMemory = "this server has no memory for it: try again later";
inline constexpr char kTooMany[] = "too many requests: try again later";
inline constexpr std::string_view kNoRandomness = "this server has no random numbers for it yet: try again later";
constexpr std::string_view describe_unwatched(const Error& error) noexcept {
  return error == ErrorCode::busy ? "no more resources can be watched: try again later" : kNoMemory;
}

// results.cpp has what follows.
//
// refuse answers with a protocol error. `data` is JSON or empty. status_of is the HTTP status that goes with a code.
void refuse(Incoming& in, int status, int code, std::string_view message, std::string_view data = {}) noexcept;

// A result is written into a text: begin_result, members by `member`, end_result, and then send_result, which answers
// with an error instead where the text has failed.
void begin_result(const Incoming& in, Text& out, std::string_view type = "complete") noexcept;
// member writes a comma where one is due, and a name; the value follows.
void member(Text& out, std::string_view name) noexcept;
void end_result(const Incoming& in, Text& out) noexcept;
void cacheable(const Incoming& in, Text& out, std::int64_t lifetime_ms, bool is_private) noexcept;
void send_result(Incoming& in, Text& out) noexcept;
// put is write without an outcome: a text keeps its failure.
inline void put(Text& out, std::string_view text) noexcept {
  static_cast<void>(out.write(text));
}
void put_quoted(Text& out, std::string_view text) noexcept;

// These answer a request.
void answer_method(Incoming& in) noexcept;               // methods.cpp: what both eras have
void answer_call(Incoming& in) noexcept;                 // call_run.cpp: tools/call
void answer_read(Incoming& in) noexcept;                 // resources/read
void answer_prompt(Incoming& in) noexcept;               // prompts/get
void answer_complete(Incoming& in) noexcept;             // completion/complete
void answer_list(Incoming& in, ItemKind kind) noexcept;  // list_pages.cpp
void write_capabilities(const Incoming& in, Text& out) noexcept;
// is_known_method tells whether a request of the version has that method.
bool is_known_method(const ServerCore& core, Version version, std::string_view method) noexcept;

// audited tells the program of a request that has been answered.
void audited(const Incoming& in, std::int64_t began_ns) noexcept;

// read_capabilities reads a client's capabilities.
CapabilitySet read_capabilities(const std::optional<JsonView>& capabilities) noexcept;

// gate.cpp: pass tells whether a request may be answered, and by whom it was made; else it has been answered.
bool pass(ServerCore& core, http::Exchange& exchange, Principal& who) noexcept;
// accepted_types is what of the two media types the field Accept allows: both where it is missing.
struct AcceptedTypes {
  bool json;    // application/json
  bool events;  // text/event-stream
};
AcceptedTypes accepted_types(const http::Request& request) noexcept;

// answer_plain answers with an error that belongs to no session or era yet.
void answer_plain(http::Exchange& exchange, int status, const MessageId& id, int code, std::string_view message,
                  std::string_view data = {}, std::string_view fields = {}) noexcept;

// modern.cpp and legacy.cpp: a message of that era. `room` is for the response.
void answer_modern(Posted& posted, std::span<char> room) noexcept;
void answer_initialize(Posted& posted, std::span<char> room) noexcept;
void answer_legacy(Posted& posted, Session& session) noexcept;
void answer_batch(Posted& posted, Session& session, JsonView batch) noexcept;
void answer_get(ServerCore& core, http::Exchange& exchange, Session& session) noexcept;  // follower.cpp
// find_session finds the session of a legacy request, checks its version field, or has answered. It is released by the
// caller.
Session* find_session(ServerCore& core, http::Exchange& exchange, const Principal& who, const MessageId& id) noexcept;

// fields.cpp: check_fields of a request compares them with what its body says. Empty: they are the same. The text lies
// in `room`.
std::string_view compare_fields(const Incoming& in, std::string_view version, std::span<char> room) noexcept;
// compare_mirrored does so for the arguments of a tool.
std::string_view compare_mirrored(const Incoming& in, const Tool& tool, std::span<char> room) noexcept;

}  // namespace coir::mcp
