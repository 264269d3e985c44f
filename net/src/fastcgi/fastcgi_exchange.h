#pragma once

#include "fastcgi/fast_cgi.h"
#include "fastcgi/record.h"
#include "fastcgi/response_head.h"
#include "fastcgi/spool_file.h"
#include "outbound/exchange.h"
#include "outbound/relayed_exchange.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {

// FastCgiExchange is one exchange on its way to an application and back. It lies on the stack of the exchange's fiber.
//
// `room` holds what is sent of the request's parameters, then what is read:
//
//   | records as they come | the head as it is gathered | fields |
//
// It is the session's scratch memory, and a buffer where that is too small. There is none while this waits and the
// application has said nothing. fastcgi_exchange.cpp tries it, tries it again and lets it fail; parameters.cpp writes the
// parameters; input.cpp sends the content; output.cpp reads the answer; scripts.cpp is find_script, and fast_cgi.cpp
// chooses the script.
struct FastCgiExchange final : OutboundRequest, RelayedExchange {
  FastCgiExchange(Exchange& given, UpstreamGroup& of, const FastCgiScript& what, const FastCgiOptions& by,
                  FastCgiCounters* counters) noexcept;
  FastCgiExchange(const FastCgiExchange&) = delete;
  FastCgiExchange& operator=(const FastCgiExchange&) = delete;
  ~FastCgiExchange();

  void run() noexcept;
  Outcome try_once() noexcept;
  bool may_retry(Error error) const noexcept;
  void fail(Error error) noexcept;
  void answer(int status) noexcept { RelayedExchange::answer(status, rules.retry_after); }
  void count(Atomic<std::uint64_t> FastCgiCounters::* which) noexcept;
  // note has the access log and the counters say why the application has not answered, or not to its end.
  void note(Error error, Atomic<std::uint64_t> FastCgiCounters::* counter) noexcept;
  void abort() noexcept;
  // grow makes `room` a buffer of that size.
  Outcome grow(std::size_t bytes) noexcept;
  // leave_memory comes before a wait: as long as nothing has been heard, the session's buffers can go to others. It copies the
  // script, which lies there, if the request is still to be sent; where that fails, they stay. leave_scratch gives up scratch
  // memory alone, and leave_path the script's where it needs no copy; false: it needs one.
  void leave_memory() noexcept;
  void leave_scratch() noexcept;
  bool leave_path() noexcept;
  bool copy_script() noexcept;

  // parameters.cpp: what is written begins the request; empty: it does not fit.
  std::string_view write_beginning(std::span<char> into) noexcept;
  bool is_given(std::string_view name) const noexcept;
  void add(FastCgiParams& params, std::string_view name, std::string_view value) const noexcept;
  void write_address(FastCgiParams& params) noexcept;
  void write_fields(FastCgiParams& params) noexcept;

  // input.cpp
  Outcome send_parameters() noexcept;
  bool keeps_content() const noexcept;
  int keep_content() noexcept;
  int save_piece(std::size_t bytes) noexcept;
  Outcome give_input() noexcept;
  Outcome give_kept() noexcept;
  void drop_input() noexcept;
  Outcome give(std::span<char> record, std::size_t bytes) noexcept;
  std::expected<bool, Error> hear() noexcept override;

  // output.cpp
  Outcome take_output() noexcept;
  Outcome read_more(Deadline deadline) noexcept;
  Outcome take_piece(std::span<char> bytes) noexcept;
  Outcome begin_response() noexcept;
  Outcome pass_content(std::span<char> bytes) noexcept;
  void take_errors(std::span<char> bytes) noexcept;
  void complain() noexcept;
  Outcome take_end(FastCgiEnd end) noexcept;

  std::size_t quarter() const noexcept { return room.size() / 4; }
  std::span<char> records() const noexcept { return responding ? room : room.first(quarter()); }

  UpstreamGroup& group;
  FastCgiScript script;  // in the session's path memory, or `copied`
  const FastCgiOptions& rules;
  FastCgiCounters* const counters;  // may be null

  UpstreamLease lease;
  char* copied = nullptr;  // charged to account::http
  Buffer larger;
  std::span<char> room;
  Buffer kept;        // content that fits, behind the place for a record's head
  SpoolFile spooled;  // content that does not
  FastCgiReader reader;
  ScriptHead head;
  std::int64_t sent_ns = 0;       // when this try began, or its content was sent
  std::uint64_t input_bytes = 0;  // of the request's content
  std::uint64_t left = 0;         // of a response whose length is said
  std::uint32_t complaints = 0;   // bytes of stderr that were told
  std::uint16_t id = 0;
  std::uint8_t line_bytes = 0;
  bool responding = false;  // the response has begun
  bool has_length = false;  // its length is said
  bool no_content = false;  // what the script writes is dropped
  bool ended = false;       // the application has ended the request
  bool client_left = false;
  char line[120];  // of stderr
};

}  // namespace coir::http
