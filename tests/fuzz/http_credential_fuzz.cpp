// A line of a file of credentials is read within its bounds, and what is taken keeps to its limits.

#include "http/routing/credential_line.h"
#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const Exact line({reinterpret_cast<const char*>(data), size});
  Credential credential;
  if (parse_credential(line.view(), credential) != nullptr) return 0;
  require(is_credential_name(credential.name_text()));
  require(begins(line.view(), credential.is_token() ? "bearer" : "basic") || line.view().front() == ' ' ||
          line.view().front() == '\t');
  require(credential.is_token() == (credential.salt_size == 0));
  require(credential.salt_size <= Credential::kMostSalt && credential.iterations <= Credential::kMostIterations);
  return 0;
}
