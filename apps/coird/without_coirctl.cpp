// The control client of a build without it.
#include "../coirctl/coirctl.h"
#include "complaint.h"

int coirctl(int, char**) noexcept {
  say({"this build is without coirctl: build it with -DCOIR_COIRCTL=ON"});
  return 2;
}
