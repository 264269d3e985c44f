#pragma once

#include "http/connection/connection.h"

namespace coir::http {

// ConnectionQueues holds the connections that no fiber serves. Each stands in one list:
//
//   resting      waits on its socket between two requests; the one that has rested for longest comes first
//   half_heads   waits on its socket in the middle of a head
//   handshakes   waits on its socket before its TLS handshake or in the middle of it
//   waiting      its client has sent something, and it waits for a session
//   pending      the same, but its handshake has to begin, which waits for the handshake gate as well
//
//   rest() -> resting, half_heads or handshakes -> unrest(), enqueue() -> waiting or pending -> dequeue()
//
// Its user holds the dispatcher's lock.
class ConnectionQueues {
 public:
  // rest files a connection that is about to wait on its socket; unrest takes it out again.
  void rest(Connection& connection) noexcept { resting_list(connection).push_back(connection); }
  void unrest(Connection& connection) noexcept { resting_list(connection).remove(connection); }

  // enqueue files a connection that wants a session.
  void enqueue(Connection& connection) noexcept { waiting_list(connection).push_back(connection); }

  // next is the connection to be served next: the one that has waited for longest, or null. A pending handshake counts
  // only while one may begin.
  Connection* next(bool handshake_may_begin) const noexcept {
    Connection* const request = waiting_.front();
    Connection* const pending = handshake_may_begin ? pending_.front() : nullptr;
    if (request == nullptr) return pending;
    return pending != nullptr && pending->since_ns < request->since_ns ? pending : request;
  }
  // dequeue takes out the connection that next has returned.
  void dequeue(Connection& connection) noexcept { waiting_list(connection).remove(connection); }

  // begins_handshake tells whether serving this connection begins its handshake.
  static bool begins_handshake(const Connection& connection) noexcept {
    return !connection.logs && connection.tls != nullptr && !connection.in_handshake;
  }
  bool has_pending() const noexcept { return pending_.front() != nullptr; }
  std::size_t resting() const noexcept { return resting_.size() + half_heads_.size() + handshakes_.size(); }
  std::size_t waiting() const noexcept { return waiting_.size() + pending_.size(); }

  // Each of these takes a connection out of its list, so that it belongs to the caller, or returns null. A resting
  // connection whose client has just sent something is left alone.
  Connection* take_longest_resting(std::int64_t not_after_ns) noexcept;
  Connection* take_waiting(std::int64_t not_after_ns) noexcept;
  template <class Meant>
  Connection* take_handshake(Meant is_meant) noexcept {
    return take(handshakes_, is_meant);
  }
  // take_half_head takes one whose head began before then.
  Connection* take_half_head(std::int64_t not_after_ns) noexcept {
    return take(half_heads_, [=](const Connection& each) { return each.since_ns <= not_after_ns; });
  }

 private:
  template <class Meant>
  static Connection* take(ConnectionList& from, Meant is_meant) noexcept {
    for (Connection* connection = from.front(); connection != nullptr; connection = connection->next) {
      if (!is_meant(*connection) || !disarm_resting_wait(*connection)) continue;
      from.remove(*connection);
      return connection;
    }
    return nullptr;
  }
  ConnectionList& resting_list(const Connection& connection) noexcept {
    return connection.tls != nullptr ? handshakes_ : connection.has_half_head ? half_heads_ : resting_;
  }
  ConnectionList& waiting_list(const Connection& connection) noexcept {
    return begins_handshake(connection) ? pending_ : waiting_;
  }

  ConnectionList resting_;
  ConnectionList half_heads_;
  ConnectionList handshakes_;
  ConnectionList waiting_;
  ConnectionList pending_;
};

}  // namespace coir::http
