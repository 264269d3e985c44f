#pragma once

// A client of MCP servers.
//
//   auto client = mcp::McpClient::create({.url = "http://board:8080/mcp"});
//   if (!client) return complain(client.error());
//   auto sum = client->call("add", R"({"a":2,"b":3})", {.deadline = Deadline::after(2s)});
//   if (sum) show(sum->text());

#include <coir/config.h>
#include <coir/port/needs_fibers.h>

#if !COIR_MCP || !COIR_STREAMS
#error "this build of coir has no MCP client: configure it with -DCOIR_MCP=ON and -DCOIR_STREAMS=ON"
#endif

#include <coir/atomic.h>
#include <coir/callable.h>
#include <coir/deadline.h>
#include <coir/http/client.h>
#include <coir/json_writer.h>
#include <coir/mcp/detail/answer.h>
#include <coir/mcp/detail/protocol.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace coir::mcp {

namespace detail {
struct McpClientState;
struct FanOutPart;  // fan_out.cpp
}  // namespace detail

// Notification is a message that comes before the answer, or on a stream of changes: progress, log lines, changed lists,
// updated resources. Valid while the function that is told runs.
struct Notification {
  std::string_view method;  // such as "notifications/progress"
  JsonView params;
  std::string_view text;  // params as JSON, absent where there are none
};

// Question is what a server asks its client while it answers: "elicitation/create", "sampling/createMessage" or
// "roots/list".
struct Question {
  std::string_view method;
  JsonView params;
  std::string_view text;  // params as JSON, absent where there are none
  std::string_view key;   // by which a modern server knows the question, as JSON writes it; empty for others
};

// All that is pointed to outlives the client. One of `url` and `command` is given.
struct McpClientOptions {
  std::string_view url = {};                        // of http or https
  std::span<const http::RequestField> fields = {};  // of each request: Authorization; at most 8
  const Address* to = nullptr;                      // as in http::ClientRequest
  const http::ClientOptions* http = nullptr;        // whom to trust, how many connections
  std::span<const char* const> command = {};  // a program that speaks on its standard input and output; ends in null
  const char* const* environment = nullptr;   // its own, as in Command
  const char* directory = nullptr;            // to start it in
  std::string_view name = "coir";             // the client's name, sent to the server
  std::string_view version = "1";
  std::chrono::milliseconds timeout{30'000};       // of a request without a deadline of its own
  std::chrono::milliseconds probe_timeout{5'000};  // for a program's first word: old ones may be silent
  // A stream that is silent for longer counts as broken. Servers of streams send comments.
  std::chrono::milliseconds silence{300'000};
  std::size_t max_message = 256 * 1024;  // of one message that comes; up to 1 MiB
  // The pause before a program that has died is started anew; it doubles up to the longest while none answers.
  std::chrono::milliseconds pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  // The server may ask us by `asked`, which writes the result and returns true, or returns false: then an elicitation is
  // declined, and anything else refused. It runs on the fiber that waits for the answer, and may wait. A legacy server
  // may ask on its stream of changes instead: somebody has to listen then. Empty: nothing may be asked, whatever the flags
  // say.
  bool elicitation = false;
  bool sampling = false;
  bool roots = false;
  Callable<bool(const Question& question, JsonWriter& answer)> asked = {};
};

struct CallOptions {
  Deadline deadline = {};  // never: McpClientOptions::timeout from now on
  // told runs on the caller's fiber for each message before the answer. If it is empty, the request wants no progress.
  Callable<void(const Notification& notification)> told = {};
  std::string_view log_level = {};  // of log lines that a modern server is to send, such as "info"; empty: none
  std::string_view meta = {};       // further members of `_meta`, as a JSON object
  // The schema of a tool, as JSON: it tells which arguments stand in fields of the request, too (x-mcp-header).
  std::string_view input_schema = {};
  // `asked` answers what a modern server asks while it answers this request; empty: as McpClientOptions say. With
  // hand_on nobody does: a result of `input_required` is the answer, and the caller sends the request again with what
  // it has found out.
  const CapabilitySet* capabilities = nullptr;
  Callable<bool(const Question& question, JsonWriter& answer)> asked = {};
  bool hand_on = false;
};

// McpRequest is any request of the protocol.
struct McpRequest {
  std::string_view method;
  std::string_view params = {};  // a JSON object without `_meta`; empty: none
  std::string_view name = {};    // of a tool or a prompt, or a resource's URI: what Mcp-Name repeats
  bool repeatable = false;       // may be sent again when the connection breaks before its answer
};

// Listed is what a server has lists of.
enum class Listed : std::uint8_t { tools, resources, templates, prompts };

// ListedAs tells of a whole list: how long it may be taken for fresh, and whether only by whoever asked.
struct ListedAs {
  std::chrono::milliseconds fresh{0};
  bool is_private = false;
  std::size_t count = 0;
};

// Completion is what `complete` asks for. A prompt or a template is named by one of the first two.
struct Completion {
  std::string_view prompt;
  std::string_view uri_template;
  std::string_view argument;
  std::string_view value;    // so far
  std::string_view context;  // other arguments, as a JSON object of texts; empty: none
};

// Changes are what `listen` wants to be told of.
struct Changes {
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::span<const std::string_view> uris;  // of resources that change
};

struct McpClientCounters {
  Atomic<std::uint64_t> requests = 0;    // sent, retries included
  Atomic<std::uint64_t> sessions = 0;    // begun with a legacy server, or found out that a server is modern
  Atomic<std::uint64_t> resumed = 0;     // streams that went on by Last-Event-ID
  Atomic<std::uint64_t> cancelled = 0;   // requests that the server was told to drop
  Atomic<std::uint64_t> ignored = 0;     // messages that nobody waits for, such as are none, refused subscriptions
  Atomic<std::uint64_t> starts = 0;      // of the program
  Atomic<std::uint64_t> garbage = 0;     // lines of the program that are no message, or too long
  Atomic<std::uint64_t> complaints = 0;  // lines of its standard error, logged or not
};

// McpClient asks one MCP server, by HTTP or as a program that it has started. Which revision the server speaks is found
// out with the first request, and again when the server has changed; sessions of legacy servers that are lost are made anew
// unseen.
//
// A program wants a fiber that runs it:
//
//   auto client = mcp::McpClient::create({.command = argv});
//   nursery.start([&] { return client->run(); });
//
// A request waits until the program runs, also between two starts of it. Any number of fibers may ask at a time. A fiber
// that is cancelled, or whose deadline passes, has the server drop the request, in the way of its era. Memory is of
// account::mcp while a request is under way, besides the HTTP client's.
//
// Errors of its requests (Failure::error): those of http::Client::request and Response::expect_success; what
// Failure tells of JSON-RPC's; protocol (the server's answer is none), truncated (the stream has ended before the
// answer), limit (a message is over max_message, a session's name over 256 bytes, the server asks again and again),
// unsupported (none of our revisions; the server asks for what was not offered), closed (the program has died, the
// client is closed), no_memory, timed_out, cancelled, not_found and system (the program cannot start).
class McpClient {
 public:
  // create makes ready and connects to nothing. Errors: invalid (neither or both of url and command, max_message,
  // fields), no_memory.
  [[nodiscard]] static std::expected<McpClient, Error> create(const McpClientOptions& options) noexcept;

  McpClient(McpClient&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  McpClient& operator=(McpClient&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  // No call may be in progress. A legacy session ends by itself later; `leave` ends it at once.
  ~McpClient();

  // run starts the program, reads what it says, and starts it anew when it has died, until close or cancellation; then
  // the program's input is closed and it has a second to end before it is killed. For a server by HTTP there is nothing
  // to run. One fiber, once. Errors: cancelled, timed_out (a scope around it); no_memory.
  [[nodiscard]] std::expected<void, Error> run() noexcept;
  // close ends run, a program's requests under way, and later ones of any kind, with `closed`. Idempotent; any fiber or
  // thread.
  void close() noexcept;

  // request sends any request and waits for its result.
  [[nodiscard]] std::expected<Answer, Failure> request(const McpRequest& request,
                                                       const CallOptions& options = {}) noexcept;

  // These are requests with their params filled in; client_requests.cpp has them. `arguments` is a JSON object; empty:
  // none. discover returns what the server says of itself: a modern one's result of server/discover, a legacy one's of
  // initialize.
  [[nodiscard]] std::expected<Answer, Failure> discover(const CallOptions& options = {}) noexcept;
  [[nodiscard]] std::expected<Answer, Failure> call(std::string_view tool, std::string_view arguments = {},
                                                    const CallOptions& options = {}) noexcept;
  [[nodiscard]] std::expected<Answer, Failure> read(std::string_view uri, const CallOptions& options = {}) noexcept;
  [[nodiscard]] std::expected<Answer, Failure> prompt(std::string_view name, std::string_view arguments = {},
                                                      const CallOptions& options = {}) noexcept;
  [[nodiscard]] std::expected<Answer, Failure> complete(const Completion& completion,
                                                        const CallOptions& options = {}) noexcept;

  // lists.cpp has what follows. list goes through the pages of a list and calls `each` with every item and its JSON,
  // which live while it runs; it may wait, and ends the walk by false. Tools whose x-mcp-header no request can carry are
  // left out, as the protocol wants.
  using Each = Callable<bool(JsonView item, std::string_view text)>;
  [[nodiscard]] std::expected<ListedAs, Failure> list(Listed what, const Each& each,
                                                      const CallOptions& options = {}) noexcept;

  // listen has options.told called with changes until the stream ends, the deadline passes or the caller is cancelled;
  // without a deadline it goes on. Success: the server has ended it in good order. With a legacy server a broken stream
  // is resumed where that can be, and resources that it refuses to watch are left out (McpClientCounters::ignored).
  // After any end changes may have been missed. Errors: as a request's; unsupported (the server tells of no changes),
  // timed_out, cancelled.
  [[nodiscard]] std::expected<void, Failure> listen(const Changes& changes, const CallOptions& options) noexcept;

  // leave ends a legacy session. The next request begins another. Errors: those of http::Client::request.
  std::expected<void, Error> leave(Deadline deadline) noexcept;

  // version is the revision that the server spoke last; none while that is unknown.
  std::optional<Version> version() const noexcept;
  const McpClientCounters& counters() const noexcept;

 private:
  friend struct detail::FanOutPart;
  explicit McpClient(detail::McpClientState* state) noexcept : state_(state) {}

  detail::McpClientState* state_;
};

// Branch is one part of a fan-out: a tool of one server, and, afterwards, what came of it.
struct Branch {
  McpClient* client = nullptr;
  std::string_view tool;
  std::string_view arguments;                // a JSON object; empty: none
  std::chrono::milliseconds within{30'000};  // its own deadline, from the start on

  // Until the call has ended: stale. If a faster call ended it: cancelled.
  std::expected<Answer, Failure> outcome = std::unexpected(Failure(ErrorCode::stale));
  std::chrono::milliseconds took{0};
};

enum class Spread : std::uint8_t {
  all,   // every branch is waited for, whatever becomes of the others
  race,  // the first answer that is no tool's failure ends the other branches
};

struct FanOutOptions {
  Spread spread = Spread::all;
  Deadline deadline = {};   // of all together
  std::uint32_t limit = 0;  // branches at a time; 0: all
  // came is called as each branch ends, by the fiber of that branch, one at a time. It may wait, and others then wait for
  // it.
  Callable<void(Branch& branch)> came = {};
};

// fan_out calls the tools of all branches at once, and returns how many have answered. While a modern server by HTTP is
// silent its branch has neither a fiber nor a buffer; other branches keep their fibers. A server that is dead or slow
// costs its own branch alone: that ends with its error, at its own deadline at the latest. When the common deadline
// passes, what has come by then stays, and the other branches end with `timed_out`.
//
//   mcp::Branch parts[] = {{.client = &here, .tool = "status"}, {.client = &there, .tool = "status", .within = 2s}};
//   const auto answered = mcp::fan_out(parts, {.deadline = Deadline::after(5s), .came = show_branch});
//   for (const auto& part : parts) if (part.outcome) show(part.outcome->result());
//
// From a fiber. Errors: cancelled and timed_out of the caller (all branches have ended by then, and what has come
// stays); no_memory for the branches' records; unsupported where nothing can be waited for. A branch that gets no fiber
// ends with limit or no_memory. (fan_out.cpp)
[[nodiscard]] std::expected<std::size_t, Error> fan_out(std::span<Branch> branches,
                                                        const FanOutOptions& options = {}) noexcept;

}  // namespace coir::mcp
