#pragma once

namespace coir {

// heartbeats_in_time tells whether no group is late. It names each late one on standard error, once until it reports.
// One thread at a time.
bool heartbeats_in_time() noexcept;

}  // namespace coir
