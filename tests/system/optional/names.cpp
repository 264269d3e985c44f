#include <coir/tcp.h>

using namespace coir;

extern "C" void use_names(std::string_view host) {
  auto stream = connect(host, 80, Deadline::after(std::chrono::seconds(2)));
  if (stream) static_cast<void>(stream->write("hello\n"));
}
