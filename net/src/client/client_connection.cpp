#include "client/client_connection.h"

#include <coir/http/accounts.h>
#include <string.h>

#include <new>

#include "socket/charged.h"

namespace coir::http {

std::expected<ClientConnection*, Error> ClientConnection::create(std::string_view key,
                                                                 std::size_t kernel_bytes) noexcept {
  if (key.size() > UINT16_MAX) return std::unexpected(Error{ErrorCode::limit});
  void* const memory = take_charged(account::connections, sizeof(ClientConnection) + key.size(), kernel_bytes);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const connection = ::new (memory) ClientConnection;
  connection->kernel_bytes = static_cast<std::uint32_t>(kernel_bytes);
  connection->key_size = static_cast<std::uint16_t>(key.size());
  memcpy(connection + 1, key.data(), key.size());
  return connection;
}

void ClientConnection::destroy(ClientConnection* connection, bool in_good_order) noexcept {
  if (!in_good_order) connection->stream.abandon();
  const std::size_t charged = connection->charged();
  connection->~ClientConnection();
  give_charged(account::connections, connection, charged);
}

}  // namespace coir::http
