#include <coir/http/proxy.h>

using namespace coir::http;

extern "C" void use_proxy(Exchange& exchange) {
  auto upstream = Upstreams::create("http://127.0.0.1:8080");
  auto forwarder = Forwarder::create();
  if (upstream && forwarder) forwarder->forward(exchange, upstream->group(), {.host = "inner"});
}
