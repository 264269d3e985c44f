#include "client/client_connection.h"

#include <coir/http/accounts.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <new>

namespace coir::http {

std::expected<ClientConnection*, Error> ClientConnection::create(std::string_view key,
                                                                 std::size_t kernel_bytes) noexcept {
  if (key.size() > UINT16_MAX) return std::unexpected(Error{ErrorCode::limit});
  const std::size_t bytes = sizeof(ClientConnection) + key.size();
  if (!Pressure::charge(account::connections, bytes + kernel_bytes)) {
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  void* const memory = malloc(bytes);
  if (memory == nullptr) {
    account::connections.refund(bytes + kernel_bytes);
    return std::unexpected(Error{ErrorCode::no_memory});
  }
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
  free(connection);
  account::connections.refund(charged);
}

}  // namespace coir::http
