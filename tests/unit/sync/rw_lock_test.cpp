#include <coir/rw_lock.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace rw_lock_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Mixed;
using coir::test::Random;
using coir::test::Thread;
using coir::test::until_parked;
using namespace std::chrono_literals;
using coir::RwLock;

TEST_GROUP_BASE(RwLock, Everywhere) {};

TEST(RwLock, readers_share_it_and_a_writer_has_it_alone) {
  everywhere([&] {
    RwLock lock;
    auto first = lock.read();
    auto second = lock.read();
    expect(first && second && !lock.try_write());
    expect(is(lock.write(Deadline::now()), ErrorCode::timed_out));
    first->unlock();
    second->unlock();
    auto writing = lock.write(Deadline::now());
    expect(writing && !lock.try_write() && !lock.try_read());
    writing->unlock();
    expect(lock.try_read().has_value());
    expect(lock.try_write().has_value());
  });
}

TEST(RwLock, a_reader_does_not_pass_a_writer_that_waits) {
  everywhere([&] {
    RwLock lock;
    int order = 0;
    auto first = lock.read();
    expect(first.has_value());
    Fiber writer = spawn([&] {
      const auto held = lock.write();
      expect(held.has_value());
      expect(order++ == 0);
    });
    until_parked(writer, "exclusive lock");
    expect(!lock.try_read());
    std::atomic<int> reading{0};
    Fiber readers[3];
    for (Fiber& reader : readers) {
      reader = spawn([&] {
        auto held = lock.read();
        expect(held && order == 1);
        ++reading;
        while (reading < 3) coir::yield();  // all of them together
      });
    }
    for (Fiber& reader : readers) until_parked(reader, "shared lock");
    first->unlock();
    expect(writer.join().has_value());
    for (Fiber& reader : readers) expect(reader.join().has_value());
  });
}

TEST(RwLock, readers_behind_a_writer_that_gives_up_come_in) {
  everywhere([&] {
    RwLock lock;
    auto reading = lock.read();
    Fiber writer = spawn([&] { expect(is(lock.write(), ErrorCode::cancelled)); });
    until_parked(writer, "exclusive lock");
    Fiber late = spawn([&] { expect(is(lock.write(Deadline::after(8ms)), ErrorCode::timed_out)); });
    Fiber reader = spawn([&] { expect(lock.read().has_value()); });
    until_parked(reader);
    expect(writer.cancel().has_value());
    expect(writer.join().has_value());
    expect(late.join().has_value());
    expect(reader.join().has_value());
  });
}

TEST(RwLock, stress) {
  Mixed mixed("rw_lock");
  RwLock lock;
  std::atomic<int> readers{0}, writers{0};
  mixed.run([&](Random& random) {
    const Deadline deadline = random.below(4) == 0 ? Deadline::after(random.micros(300)) : Deadline::never();
    const bool writes = random.below(3) == 0;
    const auto gave_up = [&](coir::Error error) {
      mixed.expect(error == ErrorCode::timed_out || error == ErrorCode::cancelled);
    };
    if (writes) {
      const auto held = lock.write(deadline);
      if (!held) return gave_up(held.error());
      mixed.expect(++writers == 1 && readers == 0);
      if (random.below(4) == 0) coir::yield();
      --writers;
    } else {
      const auto held = lock.read(deadline);
      if (!held) return gave_up(held.error());
      ++readers;
      mixed.expect(writers == 0);
      if (random.below(4) == 0) coir::yield();
      --readers;
    }
  });
  mixed.expect(lock.try_write().has_value());
  mixed.check();
}

}  // namespace rw_lock_test
