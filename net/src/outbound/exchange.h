#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/net/stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "base/buffer_pool.h"
#include "http/message/response_parser.h"

namespace coir::http {

// Pace is how long a peer may take nothing of what is sent to it, and when all of it has to be sent.
struct Pace {
  std::chrono::milliseconds idle;
  Deadline last = Deadline::never();

  Deadline next() const noexcept { return std::min(last, Deadline::after(idle)); }
};

// kBeforeChunk and kBehindChunk are the room around the content of a chunk; frame_chunk writes its size in front and its
// line end behind, and returns all of it.
inline constexpr std::size_t kBeforeChunk = 18;
inline constexpr std::size_t kBehindChunk = 2;
std::string_view frame_chunk(char* content, std::size_t bytes) noexcept;

// OutboundRequest is a request on its way over a connection that its owner has: it is sent while the peer is listened
// to, which may answer before it has read all. Client, proxy and FastCGI have one for each exchange. request_sink.cpp
struct OutboundRequest {
  using Outcome = std::expected<void, Error>;

  // goes_over names the connection, which lasts as long as the request is sent and heard, and tells whether it has
  // carried another one before. Such a connection may have ended, or have lost its peer, before it saw this request.
  void goes_over(Stream& connection, bool has_rested = false) noexcept {
    over_ = &connection;
    reused = has_rested;
  }
  Stream& stream() const noexcept { return *over_; }

  // hear takes what the peer has said, without waiting. True: it wants no more of the request.
  virtual std::expected<bool, Error> hear() noexcept { return false; }

  // send_beginning sends `head`, and in the same call as much of the content as the kernel takes; the rest as
  // send_content does. Nothing is heard before the head is sent, whose memory may be used for hearing.
  Outcome send_beginning(std::string_view head, std::string_view content, Pace pace) noexcept;

  // send_content sends, hears whenever the kernel takes no more, and stops where the peer wants no more.
  Outcome send_content(std::string_view bytes, Pace pace) noexcept;

  // read is Stream::read for a response. A reused connection whose peer acknowledges nothing that is sent to it fails with
  // `closed`, as if the peer had closed it: after a second or two where the request may be repeated, else after six or more.
  std::expected<std::size_t, Error> read(std::span<char> into, Deadline until) noexcept;

  // await waits until something may be read, as read does, but needs no memory meanwhile.
  Outcome await(Deadline until) noexcept;

  // is_in_doubt tells that a reused connection's peer may have vanished: it has not acknowledged the request yet, although the
  // request may be repeated, or is no longer early, and was sent again. read finds out.
  bool is_in_doubt(bool is_early) const noexcept;
  // is_midway tells that a part of the request was sent, whose peer may have hung up because of what the client sends.
  bool is_midway() const noexcept { return sent_any && !sent_whole; }
  // is_repeatable tells whether it may still have to be sent again, however whole it was sent.
  bool is_repeatable() const noexcept { return reused && idempotent && !unrepeatable && !heard_any; }
  // may_repeat tells whether `error` means that the peer had closed a reused connection before it saw the request.
  bool may_repeat(Error error) const noexcept;

 protected:
  ~OutboundRequest() = default;

 private:
  Deadline next_look(Deadline until) const noexcept;
  Outcome look_at_peer() const noexcept;

  Stream* over_ = nullptr;

 public:
  // Last, as those of OutboundExchange are first: they share a word.
  bool sent_any = false;    // of this request on this connection
  bool sent_whole = false;  // all of the request
  bool heard_any = false;   // of a response
  bool reused = false;
  bool idempotent = false;
  bool unrepeatable = false;  // content has been sent that cannot be sent again
};

// kMostHead is how many bytes the head of a response can have at most: what three quarters of a buffer hold.
inline constexpr std::uint32_t kMostHead = 48 * 1024;

// OutboundExchange is an OutboundRequest of HTTP with the head of its response.
//
// `room` is the only memory that it needs: the request's head lies in it until it is sent, then the response's head with
// content behind it as far as it came along, and the records of the fields in its last quarter:
//
//   | head | content that came along | free | fields |
//
// It is memory of the owner's, or `memory`, which replaces it where a head is longer. response_source.cpp
struct OutboundExchange : OutboundRequest {
  // A response's head may have up to `most_head` bytes, kMostHead of them at most.
  explicit OutboundExchange(std::uint32_t most_head) noexcept : most_head_(most_head) {}
  OutboundExchange(const OutboundExchange&) = delete;
  OutboundExchange& operator=(const OutboundExchange&) = delete;

  // begin_anew forgets what was sent and heard, for another connection, or for one that has sent so many interim responses.
  void begin_anew(std::uint8_t interims = 0) noexcept;
  std::uint8_t interims() const noexcept { return interims_; }
  // grow makes `room` the next larger buffer, with the first `used` bytes of what it was. Errors: limit (the longest head
  // fits), no_memory.
  Outcome grow(std::size_t used) noexcept;

  // await_leave waits for 100. Servers that know no Expect are silent: once `patience` is over it returns, too.
  Outcome await_leave(Deadline patience) noexcept;
  // read_head waits for a final head, or one that switches protocols where `asks_upgrade`.
  // Errors: protocol and limit, with a ClientFault; truncated (it has begun); those of Stream::read.
  Outcome read_head(Deadline until) noexcept;
  // has_refusal tells whether a peer that takes no more of the request has answered it all the same.
  bool has_refusal(Error sending, Deadline until) noexcept;

  std::expected<bool, Error> hear() noexcept final;

  // The front of `room`, where a response's bytes lie.
  std::span<char> heads() const noexcept { return room.first(room.size() / 4 * 3); }

  AnswerTo answers = AnswerTo::other;  // what the response is to
  bool asks_upgrade = false;           // the request asks for another protocol
  bool got_leave = false;              // the peer has said 100
  bool got_head = false;               // `response` is a final one
  std::span<char> room;
  Buffer memory;
  ParsedResponse response;
  std::uint32_t have = 0;   // bytes of a response in `room`
  std::uint32_t begin = 0;  // where content behind the head begins

 protected:
  ~OutboundExchange() = default;

 private:
  // heard_interim hears of a response of 1xx but 100, which is in `response`.
  virtual void heard_interim() noexcept {}

  Outcome read_more(Deadline until) noexcept;
  std::expected<bool, Error> took_head() noexcept;

  std::uint32_t seen_ = 0;  // of `have`, parsed before
  const std::uint32_t most_head_;
  std::uint8_t interims_ = 0;  // responses of 1xx
  bool hung_up_ = false;       // reading has failed
};

}  // namespace coir::http
