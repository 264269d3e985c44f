#include "http/concurrent/queues/connection_queues.h"

namespace coir::http {

Connection* ConnectionQueues::take_longest_resting(std::int64_t not_after_ns) noexcept {
  for (Connection* connection = resting_.front(); connection != nullptr; connection = connection->next) {
    if (connection->since_ns > not_after_ns) return nullptr;
    // A connection that cannot be disarmed is about to wake, or not armed yet.
    if (!disarm_resting_wait(*connection)) continue;
    resting_.remove(*connection);
    return connection;
  }
  return nullptr;
}

Connection* ConnectionQueues::take_waiting(std::int64_t not_after_ns) noexcept {
  for (ConnectionList* const list : {&waiting_, &pending_}) {
    Connection* const first = list->front();
    if (first == nullptr || first->since_ns > not_after_ns) continue;
    list->remove(*first);
    return first;
  }
  return nullptr;
}

}  // namespace coir::http
