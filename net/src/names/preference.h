#pragma once

#include <coir/net/address.h>

namespace coir::names {

// put_best_first orders addresses of both families by what this machine can reach, and how near it is in kind (RFC 6724,
// section 6, rules 1, 5 and 6). Within a family the servers' order stays. Cost: four system calls for each address.
void put_best_first(Addresses& addresses) noexcept;

}  // namespace coir::names
