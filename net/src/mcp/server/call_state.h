#pragma once

#include <coir/deadline.h>
#include <coir/detail/nursery_base.h>
#include <coir/mcp/detail/call.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mcp/message/text.h"
#include "mcp/server/incoming.h"

namespace coir::mcp {

enum class CallKind : std::uint8_t { tool, resource, prompt, completion };

// Answered is a legacy client's answer to a question, kept as long as the call.
struct Answered {
  Answered* next = nullptr;
  std::size_t bytes = 0;
  std::optional<JsonDocument> document;
};

// CallState is a Call's inside. call_run.cpp runs it and sends what has come of it.
struct CallState {
  CallState(Incoming& incoming, CallKind what, std::string_view called) noexcept
      : in(incoming),
        kind(what),
        name(called),
        out({}, incoming.core.options.max_result_bytes),
        structured({}, incoming.core.options.max_result_bytes),
        questions({}, incoming.core.options.max_result_bytes),
        kept_state({}, kMostState),
        opened_state({}, 2 * kMostState) {}
  ~CallState();

  static constexpr std::size_t kMostState = 16 * 1024;

  // piece begins a piece of content: the comma before it, and the list before the first. False: nothing is added any
  // more.
  bool piece() noexcept;

  Incoming& in;
  CallKind kind;
  std::string_view name;
  std::string_view uri_template = {};  // of a resource by its template
  std::string_view media_type = {};    // of a resource
  std::string_view description = {};   // of a prompt
  Deadline deadline = {};
  std::optional<coir::detail::NurseryBase> nursery = {};  // of the function, while it runs
  Text out;                                               // the response
  Text structured;                                        // structured content
  Text questions;                                         // of the modern era: members of inputRequests
  Text kept_state;                                        // for the client to bring back
  Text opened_state;                                      // where what came back was opened
  std::string_view state = {};
  std::size_t pieces = 0;
  Role role = Role::user;
  bool begun = false;    // begin_result and the name of the content were written
  bool failed = false;   // isError
  bool whole = false;    // `out` is the whole response, of another server
  bool refused = false;  // it has been answered by an error
  bool cannot_ask = false;
  Answered* answers = nullptr;
};

// call_questions.cpp has what a call tells and asks on its way, call_end.cpp its end.
//
// finish_call ends the response and sends it; `ended` is the error by which the call's scope was ended, if it was.
void finish_call(CallState& call, std::expected<void, Error> ended) noexcept;

// open_kept_state reads the request's requestState. False: the call was refused.
bool open_kept_state(CallState& call) noexcept;
// seal_kept_state writes the state to keep into `out` as a text of JSON.
bool seal_kept_state(CallState& call, Text& out) noexcept;

}  // namespace coir::mcp
