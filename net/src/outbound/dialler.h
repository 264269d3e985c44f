#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/net/address.h>
#include <coir/net/stream.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <string_view>

namespace coir {

namespace http {
struct OutboundExchange;
struct Pace;
struct Url;
}  // namespace http

// Dialler makes a connection to a server, step by step: its name is looked up, an address accepts, a proxy leads on to it,
// TLS is agreed on. Each step has its own time.
//
//   Stream stream;
//   Dialler dialler{stream, {.connect = 1s, .last = deadline}};
//   if (auto made = dialler.dial("board.example", 443, &context); !made) ...   // dialler.step is the one that failed
//
// From fibers and threads. Errors of all steps: timed_out, cancelled, and those of what they call.
struct Dialler {
  using Outcome = std::expected<void, Error>;
  static constexpr std::chrono::nanoseconds kUnlimited = std::chrono::nanoseconds::max();

  // send and first_byte are of what a proxy is asked.
  enum class Step : std::uint8_t { resolve, connect, tls, send, first_byte };

  struct Times {
    std::chrono::nanoseconds resolve = kUnlimited;
    std::chrono::nanoseconds connect = kUnlimited;
    std::chrono::nanoseconds tls = kUnlimited;
    Deadline last;  // of all steps
  };

  // dial does all steps but a proxy's; null: no TLS.
  Outcome dial(std::string_view host, std::uint16_t port, const TlsContext* tls) noexcept;

  // The steps, in this order. connect leaves the address that answers first, as coir::connect; an address may be a Unix
  // socket. begin_tls wants a certificate for `host`.
  std::expected<Addresses, Error> resolve(std::string_view host, std::uint16_t port) noexcept;
  Outcome connect(const Addresses& to) noexcept;
  Outcome connect(const Address& to) noexcept;
  Outcome begin_tls(const TlsContext& context, std::string_view host) noexcept;

  // tunnel has the proxy that was connected to lead on to a server, by CONNECT through `by`, which goes over the stream.
  // Errors: protocol, with a ClientFault (it refuses). tunnel.cpp
  Outcome tunnel(http::OutboundExchange& by, const http::Url& server, std::string_view user_info,
                 http::Pace pace) noexcept;

  Stream& stream;
  Times times = {};
  Step step = Step::resolve;  // the last that was begun

 private:
  Outcome takes(std::expected<TcpStream, Error>&& tcp) noexcept;
  Deadline begin(Step next, std::chrono::nanoseconds span) noexcept {
    step = next;
    return std::min(times.last, Deadline::after(span));
  }
};

}  // namespace coir
