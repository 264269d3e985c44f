#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/json.h>
#include <coir/json_writer.h>
#include <coir/mcp/detail/protocol.h>

#if !COIR_MCP
#error "this build of coir has no MCP: configure it with -DCOIR_MCP=ON"
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir {
struct Field;
}  // namespace coir

namespace coir::mcp {

struct CallState;

// Call is a request that a program's function answers: a tool that is called, a resource that is read, a prompt that is
// got, or an argument that is completed. It lives as long as the function runs, in the fiber of the request, under
// McpServerOptions::call_deadline or the tool's own; when the protocol cancels the call its waits end with `cancelled`.
//
//   void read_pin(mcp::Call& call, const PinArguments& arguments) {
//     call.progress(0, 2);
//     const auto level = gpio.read(arguments.pin);
//     if (!level) return call.fail("the pin cannot be read");
//     call.text(*level ? "high" : "low");
//   }
//
// The answer is gathered in memory of account::mcp; if it does not fit under a ceiling, the call ends with a protocol
// error, whatever the function does afterwards. Functions that take text take UTF-8; other bytes become U+FFFD.
class Call {
 public:
  explicit Call(CallState& state) noexcept : state_(state) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // context is McpServerOptions::context.
  template <class T>
  T& context() const noexcept {
    return *static_cast<T*>(context_pointer());
  }

  // name is the tool's or prompt's name, or the resource's URI; principal who asks, as McpServerOptions::authorize has
  // named them; both empty where there is none.
  std::string_view name() const noexcept;
  std::string_view principal() const noexcept;
  Version version() const noexcept;

  // arguments are the request's own, unchecked where a tool has no declaration; a missing view where there are none.
  JsonView arguments() const noexcept;
  // argument is an argument of a prompt, a context argument of a completion, or a parameter of a resource template;
  // empty where it is missing.
  std::string_view argument(std::string_view name) const noexcept;

  // --- the answer ---
  // In a tool's and a prompt's answer each is a piece of content; in a resource's, its content.
  void text(std::string_view text) noexcept;
  // Bytes are encoded as base64.
  void image(std::string_view bytes, std::string_view media_type) noexcept;
  void audio(std::string_view bytes, std::string_view media_type) noexcept;
  void blob(std::string_view bytes, std::string_view media_type) noexcept;  // a resource's
  // A resource that goes with the answer, and a link to one.
  void embed_text(std::string_view uri, std::string_view media_type, std::string_view text) noexcept;
  void embed_bytes(std::string_view uri, std::string_view media_type, std::string_view bytes) noexcept;
  void link(std::string_view uri, std::string_view name, std::string_view media_type = {}) noexcept;
  // role is whose the messages of a prompt are from here on; user at first.
  void role(Role role) noexcept;
  // suggest adds a value to a completion, of which the protocol allows 100: false, there is no room for more.
  bool suggest(std::string_view value) noexcept;

  // structured is a tool's structured content, by its declaration of fields (coir/mcp/detail/tool.h), and the same as text for
  // clients that know only that.
  void structured(std::span<const Field> fields, const void* object) noexcept;
  // structured_json is the same of JSON that the program has written: an object.
  void structured_json(std::string_view json) noexcept;

  // fail makes a tool's answer one that tells the model that the tool has failed, and why.
  void fail(std::string_view why) noexcept;
  // refuse answers with a protocol error instead. `data` is JSON or empty. It names nothing of this machine.
  void refuse(int code, std::string_view message, std::string_view data = {}) noexcept;
  // result_json answers with a result as another server has given it: the members of a JSON object with its braces.
  void result_json(std::string_view json) noexcept;

  // --- on the way ---
  // progress tells a client that has asked for it how far the call is. It must grow with each. The numbers are whole;
  // `total` 0: not known. False: nobody listens.
  bool progress(std::int64_t done, std::int64_t total = 0, std::string_view message = {}) noexcept;
  // progress_json passes on another server's progress, whose numbers are JSON, with fractions or not; `total` empty: not
  // known.
  bool progress_json(std::string_view done, std::string_view total, std::string_view message) noexcept;
  // notify_json sends a notification of another server's on: a JSON object of params.
  bool notify_json(std::string_view method, std::string_view params) noexcept;
  // log sends a message to a client that wants those of this level. log_json: of JSON data.
  bool log(LogLevel level, std::string_view text, std::string_view logger = {}) noexcept;
  bool log_json(LogLevel level, std::string_view data, std::string_view logger = {}) noexcept;
  // disconnect has a legacy client that streams come again for the rest of the answer; nothing for others.
  void disconnect() noexcept;

  // --- asking the client ---
  bool client_can(Capability capability) const noexcept;
  // require refuses the call, as the protocol wants it, unless the client has the capability. False: it is refused.
  bool require(Capability capability) noexcept;

  // ask returns what the client has answered to a question of the program's, called `key`. In the legacy era it is sent
  // and waited for. In the modern one nothing can wait: on the first round the question is noted, and the function
  // returns; the client then makes the same request again, with the answer, and this finds it. So a function that asks
  //
  //   const auto answer = call.elicit("name", "What is your name?", kNameSchema);
  //   if (!answer) return;
  //
  // reads the same in both. Several questions may be noted in a round.
  //
  // elicit asks the user for what `schema` describes, a JSON schema of an object of plain members; the answer has
  // "action", and "content" when that is "accept". Errors: busy (noted: return), unsupported (the client cannot be
  // asked; a tool has failed and says so), limit, no_memory; in the legacy era timed_out, cancelled, closed (the
  // client's stream has ended), invalid (it answered with an error, or with something else).
  std::expected<JsonView, Error> elicit(std::string_view key, std::string_view message,
                                        std::string_view schema) noexcept;
  // sample has the client's model answer `prompt`; the answer has "content". Errors: as elicit.
  std::expected<JsonView, Error> sample(std::string_view key, std::string_view prompt,
                                        std::uint32_t max_tokens) noexcept;
  // roots asks for the client's folders; the answer has "roots". Errors: as elicit.
  std::expected<JsonView, Error> roots(std::string_view key) noexcept;
  // ask is any of the three by its JSON params; empty: none. Errors: as elicit.
  std::expected<JsonView, Error> ask(std::string_view key, Capability what, std::string_view params) noexcept;

  // keep_state has the client bring `state` back with its answers, in the modern era. It is authenticated, bound to the
  // principal and the request, and expires after McpServerOptions::state_lifetime; it is not hidden from the client.
  // state is what came back, empty on the first round; what was forged never gets here.
  void keep_state(std::string_view state) noexcept;
  std::string_view state() const noexcept;

  // deadline is when the call ends at the latest.
  Deadline deadline() const noexcept;

 private:
  void* context_pointer() const noexcept;

  CallState& state_;
};

}  // namespace coir::mcp
