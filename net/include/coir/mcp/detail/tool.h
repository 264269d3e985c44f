#pragma once

#include <coir/json_fields.h>
#include <coir/mcp/detail/call.h>
#include <coir/mcp/detail/schema.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace coir::mcp {

using coir::field;
using coir::fields;

// A tool is a function whose arguments are a plain struct, declared once:
//
//   struct PinArguments {
//     int pin = 0;
//     bool high = true;
//   };
//   constexpr auto kPinFields = mcp::fields(
//       mcp::field<&PinArguments::pin>("pin", "number of the pin").between(0, 31),
//       mcp::field<&PinArguments::high>("high", "level to set").optional());
//
//   void set_pin(mcp::Call& call, const PinArguments& arguments);
//
//   constexpr mcp::Tool kTools[] = {
//       mcp::tool<set_pin, kPinFields>({.name = "set_pin", .description = "Sets a pin", .destructive = true}),
//   };
//
// The JSON schema is made of the declaration while compiling. A call's arguments are checked against it before the
// function runs; what is wrong the model is told by its path: "arguments.pin: 3 expected 0..31". Members may be bool,
// integers, double, std::string_view, and std::optional of these, or of JsonView for anything, which need not be there.

// Marks are what a client is told of a tool beside its schema. The last four are hints by which it asks its user.
struct ToolMarks {
  std::string_view name;  // 1 to 128 of A-Z a-z 0-9 _ - .
  std::string_view title = {};
  std::string_view description = {};
  std::span<const Icon> icons = {};
  bool read_only = false;                 // it changes nothing
  bool destructive = true;                // it may destroy something; of no meaning with read_only
  bool idempotent = false;                // twice is the same as once
  bool open_world = true;                 // it deals with more than this machine
  std::chrono::milliseconds deadline{0};  // of a call; 0: McpServerOptions::call_deadline
};

struct Tool {
  using Run = void(Call& call, JsonView arguments);

  ToolMarks marks;
  std::string_view input_schema = R"({"type":"object","additionalProperties":false})";  // JSON
  std::string_view output_schema = {};                                                  // JSON; empty: none
  std::span<const Field> fields = {};  // what Mcp-Param-* fields are compared with
  Run* run = nullptr;
};

// kNothing stands for arguments that a tool has none of, where its results are declared.
inline constexpr detail::NoFields kNothing{};

namespace detail {

// read_fields checks arguments and puts them into `object`. False: the call has failed and says why.
bool read_fields(Call& call, std::span<const Field> fields, JsonView arguments, void* object) noexcept;

template <auto kFunction, auto& kIn, auto& kOut>
void run_tool(Call& call, JsonView arguments) {
  if constexpr (kIn.kCount == 0) {
    if (!read_fields(call, {}, arguments, nullptr)) return;
    if constexpr (kOut.kCount == 0) {
      kFunction(call);
    } else if (const auto out = kFunction(call)) {
      call.structured(kOut.entries, &*out);
    }
  } else {
    typename std::remove_cvref_t<decltype(kIn)>::Struct in{};
    if (!read_fields(call, kIn.entries, arguments, &in)) return;
    if constexpr (kOut.kCount == 0) {
      kFunction(call, in);
    } else if (const auto out = kFunction(call, in)) {
      call.structured(kOut.entries, &*out);
    }
  }
}

}  // namespace detail

// tool makes a tool of a function: void(Call&), or void(Call&, const Arguments&) with a declaration of fields. With a
// second declaration it returns std::optional<Result>, whose schema is the output schema: nullopt after call.fail.
template <auto kFunction, auto& kIn = kNothing, auto& kOut = kNothing>
constexpr Tool tool(const ToolMarks& marks) noexcept {
  Tool made{.marks = marks, .run = detail::run_tool<kFunction, kIn, kOut>};
  if constexpr (kIn.kCount != 0) {
    made.input_schema = detail::kSchema<kIn>.view();
    made.fields = kIn.entries;
  }
  if constexpr (kOut.kCount != 0) made.output_schema = detail::kSchema<kOut>.view();
  return made;
}

// raw_tool makes one whose schema is written by hand, and whose arguments the function checks itself.
constexpr Tool raw_tool(Tool::Run* run, std::string_view input_schema, const ToolMarks& marks,
                        std::string_view output_schema = {}) noexcept {
  return {.marks = marks, .input_schema = input_schema, .output_schema = output_schema, .run = run};
}

}  // namespace coir::mcp
