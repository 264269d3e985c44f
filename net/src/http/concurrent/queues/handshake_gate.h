#pragma once

#include <cstddef>

#include "http/connection/connection.h"

namespace coir::http {

// HandshakeGate bounds the TLS handshakes under way. A failed one counts until its client has read why, or until its
// place is wanted.
//
// Its user holds the dispatcher's lock.
class HandshakeGate {
 public:
  explicit HandshakeGate(std::size_t most) noexcept : most_(most) {}

  bool may_begin() const noexcept { return under_way_ < most_; }
  void begin(Connection& connection) noexcept;
  // end is for a connection whose handshake is under way.
  void end(Connection& connection) noexcept;
  // linger notes that a handshake has failed and its connection stays.
  void linger(Connection& connection) noexcept;
  bool any_lingers() const noexcept { return lingering_ != 0; }

 private:
  const std::size_t most_;
  std::size_t under_way_ = 0;
  std::size_t lingering_ = 0;  // of these, failed
};

}  // namespace coir::http
