#pragma once

#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <coir/pressure.h>

#include <cstddef>

namespace coir::test {

// NoBuffers has every buffer refused while it lives, the spare ones too.
class NoBuffers {
 public:
  NoBuffers() {
    Ledger::total().set_ceiling(Ledger::total().used());
    // More than there is, so that everybody gives what is spare.
    static_cast<void>(Pressure::make_room(account::buffers, std::size_t{1} << 30));
    account::buffers.set_ceiling(account::buffers.used());
    Ledger::total().set_ceiling(SIZE_MAX);
  }
  ~NoBuffers() { end(); }
  NoBuffers(const NoBuffers&) = delete;
  NoBuffers& operator=(const NoBuffers&) = delete;
  void end() const { account::buffers.set_ceiling(SIZE_MAX); }
};

}  // namespace coir::test
