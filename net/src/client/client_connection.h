#pragma once

#include <coir/net/stream.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

namespace coir::http {

// ClientConnection is a connection to a server or a proxy, charged to account::connections. While it rests it has no
// buffer: this record, with its key behind it, is all of it beside the kernel's share.
struct ClientConnection {
  // create makes a record without a connection yet. The key says where to, and over what. Errors: no_memory, limit.
  static std::expected<ClientConnection*, Error> create(std::string_view key, std::size_t kernel_bytes) noexcept;
  // destroy closes the connection: in good order, or so that the peer sees that not all was said.
  static void destroy(ClientConnection* connection, bool in_good_order) noexcept;

  std::string_view key() const noexcept { return {reinterpret_cast<const char*>(this + 1), key_size}; }
  std::size_t charged() const noexcept { return sizeof(ClientConnection) + key_size + kernel_bytes; }

  Stream stream;
  ClientConnection* next = nullptr;
  ClientConnection* previous = nullptr;
  std::int64_t rest_until_ns = 0;
  std::uint32_t kernel_bytes = 0;
  std::uint16_t key_size = 0;
  bool reused = false;  // it has carried a request before this one
};

}  // namespace coir::http
