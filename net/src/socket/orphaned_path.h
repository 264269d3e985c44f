#pragma once

#include <coir/net/address.h>

namespace coir {

// path_is_orphaned tells whether the path of a Unix socket of `type` (SOCK_STREAM, SOCK_DGRAM) is left over: nobody has
// it open any more.
bool path_is_orphaned(const Address& at, int type) noexcept;

}  // namespace coir
