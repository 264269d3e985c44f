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
  connection->owes = Owes::head;
  ++taken_;
  return connection;
}

void ConnectionRecords::give(Connection& connection) noexcept {
  connection.taken = false;
  free_.push(connection);
  --taken_;
}

std::span<Connection> ConnectionRecords::set_aside() noexcept {
  constexpr std::size_t kWorthwhile = 4 * port::kPageBytes / sizeof(Connection);
  std::size_t used = used_;
  if (is_aside_ || used < kWorthwhile || taken_ > used / 2) return {};
  while (used > 0 && !array_[used - 1].taken) --used;
  if (used_ - used < used_ / 8) return {};
  is_aside_ = true;
  free_ = {};
  for (std::size_t i = used; i-- > 0;) {
    if (!array_[i].taken) free_.push(array_[i]);
  }
  return {array_ + used, used_ - used};
}

bool ConnectionRecords::free(std::span<Connection> aside) noexcept {
  const auto address = [](const Connection* at) { return reinterpret_cast<std::uintptr_t>(at); };
  const std::uintptr_t from = rounded(address(aside.data()), std::uintptr_t{port::kPageBytes});
  // The page of the next record may be in use.
  const std::uintptr_t to = address(aside.data() + aside.size()) & ~std::uintptr_t{port::kPageBytes - 1};
  return from < to && port::give_back(reinterpret_cast<void*>(from), to - from);
}

void ConnectionRecords::bring_back(std::span<Connection> aside, bool freed) noexcept {
  const auto first = static_cast<std::size_t>(aside.data() - array_);
  is_aside_ = false;
  if (freed && used_ == first + aside.size()) {
    used_ = first;
    return;
  }
  for (std::size_t i = aside.size(); i-- > 0;) free_.push(freed ? *new (&aside[i]) Connection() : aside[i]);
}

ConnectionRecords::~ConnectionRecords() {
  for (std::size_t i = 0; i < used_; ++i) HalfHead::drop(array_[i]);
  std::destroy_n(array_, used_);
}

}  // namespace coir::http
