#include "http/connection/connection_records.h"

#include <coir/port/memory.h>

#include <cstdint>
#include <memory>
#include <new>

#include "base/rounded.h"
#include "http/connection/half_head.h"
#include "socket/kernel.h"

namespace coir::http {

std::uint64_t progress(const Connection& connection) noexcept {
  const int held = connection.awaits == Direction::writable ? kernel::unsent(connection.stream.fd()) : 0;
  const auto untaken = static_cast<std::uint64_t>(held > 0 ? held : 0);
  return connection.transferred > untaken ? connection.transferred - untaken : 0;
}

Connection* ConnectionRecords::take() noexcept {
  Connection* connection = free_.pop();
  if (connection == nullptr) {
    if (used_ == most_) return nullptr;
    connection = new (array_ + used_++) Connection();
  }
  connection->taken = true;
  ++taken_;
  return connection;
}

void ConnectionRecords::give(Connection& connection) noexcept {
  connection.taken = false;
  free_.push(connection);
  --taken_;
}

void ConnectionRecords::give_back_pages() noexcept {
  constexpr std::size_t kWorthwhile = 4 * port::kPageBytes / sizeof(Connection);
  std::size_t used = used_;
  if (used < kWorthwhile || taken_ > used / 2) return;
  while (used > 0 && !array_[used - 1].taken) --used;
  if (used_ - used < used_ / 8) return;
  const auto pages_at = [this](std::size_t index) {
    return rounded(reinterpret_cast<std::uintptr_t>(array_ + index), std::uintptr_t{port::kPageBytes});
  };
  const std::uintptr_t from = pages_at(used), to = pages_at(used_);
  if (from == to || !port::give_back(reinterpret_cast<void*>(from), to - from)) return;
  used_ = used;
  free_ = {};
  for (std::size_t i = used; i-- > 0;) {
    if (!array_[i].taken) free_.push(array_[i]);
  }
}

ConnectionRecords::~ConnectionRecords() {
  for (std::size_t i = 0; i < used_; ++i) HalfHead::drop(array_[i]);
  std::destroy_n(array_, used_);
}

}  // namespace coir::http
