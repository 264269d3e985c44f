#include "http/connection/pressure_steps.h"

namespace coir::http::pressure {

constinit PressureStep evict(1, "coir: memory is short: the connections that were idle for longest are closed\n");
constinit PressureStep shed(2, "coir: memory is short: new requests are refused\n");
constinit PressureStep pause(3, "coir: memory is short: nothing is accepted until some is free\n");

}  // namespace coir::http::pressure
