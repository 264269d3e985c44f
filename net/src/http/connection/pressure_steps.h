#pragma once

#include <coir/pressure.h>

// A server's steps when memory is short, in this order. The metrics use these names.
namespace coir::http::pressure {

// trim gives back caches and unused sessions, and then buffers of handlers that wait.
inline PressureStep& trim = Pressure::caches;
extern PressureStep evict;  // the connections that have been idle for longest are closed
extern PressureStep shed;   // new requests are answered 503
extern PressureStep pause;  // nothing is accepted until memory is below the low-water mark

}  // namespace coir::http::pressure
