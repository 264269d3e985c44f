#pragma once

namespace coir::test {

// limit_time ends the process when its tests hang: it writes the name of the test that runs, all fibers and, where
// scripts/test started it, all threads to standard error, and aborts. main calls it once.
//
// The limit is COIR_TEST_LIMIT seconds, or 120, of a machine whose coir_speed is 900 ms. scripts/test sets
// COIR_TEST_SCALE, in per cent, for this machine; a sanitizer and an emulated CPU double it. It is 590 seconds at most.
void limit_time() noexcept;

}  // namespace coir::test
