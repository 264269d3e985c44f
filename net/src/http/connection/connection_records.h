#pragma once

#include <cstddef>
#include <span>

#include "http/connection/connection.h"

namespace coir::http {

// ConnectionRecords is an array of connections, in address space that becomes memory as it is used. Its user holds the
// engine's lock.
//
// Three kinds of things are kept for whoever comes next. They share IntrusiveStack and no class, for the kernel gets
// each back in another way. Connections lie many to a page: only pages behind the last that is taken can go. HTTP
// sessions are whole pages, and each goes by itself. Buffers (base/spare_mappings.h) are mappings of their own, and
// serve the process, not a server.
class ConnectionRecords {
 public:
  ConnectionRecords(Connection* array, std::size_t most) noexcept : array_(array), most_(most) {}
  ConnectionRecords(const ConnectionRecords&) = delete;
  ConnectionRecords& operator=(const ConnectionRecords&) = delete;
  ~ConnectionRecords();

  // take returns a free connection, or null. Its stream may still be open.
  Connection* take() noexcept;
  void give(Connection& connection) noexcept;
  bool all_taken() const noexcept { return taken_ == most_; }
  std::size_t taken() const noexcept { return taken_; }

  // set_aside takes the records behind the last that is taken out of use, once half of the records that were used are
  // free and an eighth lies there, so that the walk is paid for by those that have closed; else none. free then gives
  // the kernel their pages, without the lock: nobody takes them meanwhile. bring_back puts them into use again, with the
  // lock, `freed` being the outcome. Between the two there is nothing to set aside for anybody else.
  std::span<Connection> set_aside() noexcept;
  [[nodiscard]] static bool free(std::span<Connection> aside) noexcept;
  void bring_back(std::span<Connection> aside, bool freed) noexcept;

 private:
  Connection* const array_;
  const std::size_t most_;
  coir::detail::IntrusiveStack<Connection> free_;
  std::size_t used_ = 0;  // those that were ever taken: the rest of the array is untouched
  std::size_t taken_ = 0;
  bool is_aside_ = false;  // some are, between set_aside and bring_back
};

}  // namespace coir::http
