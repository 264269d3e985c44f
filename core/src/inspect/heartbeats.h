#pragma once

#include <coir/life_watch.h>

namespace coir {

// heartbeats_in_time tells whether no group is late. It names each late one, once until it reports. One thread at a
// time.
bool heartbeats_in_time(const LifeWatch::Tell& tell) noexcept;

}  // namespace coir
