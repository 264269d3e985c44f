#include <coir/detail/accounts.h>

namespace coir::account {

constinit Account connections("connections");
constinit Account http("http");
constinit Account files("files");
constinit Account streams("streams");

}  // namespace coir::account
