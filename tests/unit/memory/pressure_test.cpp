// Pressure makes room in the order of the steps, no further than needed, and counts each step.

#include <coir/ledger.h>
#include <coir/pressure.h>

#include <CppUTest/TestHarness.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

namespace pressure_test {

using coir::Account;
using coir::Ledger;
using coir::Pressure;
using coir::PressureStep;
using coir::Relief;

namespace {

constinit Account cached("cached"), idle("idle"), wanted("wanted");
constinit PressureStep close_idle(1, "pressure_test: the idle are closed\n");
constinit PressureStep comes_again(1, "pressure_test: a want comes again\n");

// Hoard has memory that it gives back in pieces of 100 bytes.
struct Hoard {
  Account* account;
  int order = 0;  // when it first gave; 0 never
  static int gave;

  static std::size_t give(void* context, std::size_t bytes) noexcept {
    auto& self = *static_cast<Hoard*>(context);
    std::size_t given = 0;
    while (given < bytes && self.account->used() >= 100) {
      self.account->refund(100);
      given += 100;
    }
    if (given != 0 && self.order == 0) self.order = ++gave;
    return given;
  }
};
int Hoard::gave = 0;

// Told counts the lines on standard error while it lives.
struct Told {
  int ends[2] = {-1, -1};
  int before = -1;

  Told() {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) __builtin_trap();
    before = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
  }
  ~Told() {
    dup2(before, STDERR_FILENO);
    for (const int fd : {ends[0], ends[1], before}) close(fd);
  }
  long lines() const {
    char text[1024];
    const ssize_t got = read(ends[0], text, sizeof text);
    return got > 0 ? std::count(text, text + got, '\n') : 0;
  }
};

}  // namespace

TEST_GROUP(Pressure) {
  Hoard caches{&cached}, sleepers{&idle};
  Relief closing{close_idle, Hoard::give, &sleepers};
  Relief trim{Pressure::caches, Hoard::give, &caches};

  void setup() override {
    Hoard::gave = 0;
    // In the wrong order: the steps decide.
    Pressure::add(closing);
    Pressure::add(trim);
    CHECK_TRUE(cached.charge(300));
    CHECK_TRUE(idle.charge(500));
    Ledger::total().set_ceiling(Ledger::total().used() + 100);
  }
  void teardown() override {
    Ledger::total().set_ceiling(SIZE_MAX);
    Pressure::remove(trim);
    Pressure::remove(closing);
    for (Account* account : {&cached, &idle, &wanted}) account->refund(account->used());
  }
};

TEST(Pressure, a_charge_that_fits_disturbs_nobody) {
  CHECK_TRUE(Pressure::charge(wanted, 100));
  LONGS_EQUAL(300, cached.used());
  LONGS_EQUAL(500, idle.used());
}

TEST(Pressure, caches_go_first_and_no_more_than_is_wanted) {
  const std::uint64_t trims = Pressure::caches.taken();
  CHECK_TRUE(Pressure::charge(wanted, 250));
  LONGS_EQUAL(100, cached.used());
  LONGS_EQUAL(500, idle.used());
  LONGS_EQUAL(trims + 1, Pressure::caches.taken());
}

TEST(Pressure, idle_ones_are_closed_when_the_caches_are_gone) {
  CHECK_TRUE(Pressure::charge(wanted, 600));
  LONGS_EQUAL(0, cached.used());
  LONGS_EQUAL(300, idle.used());
  LONGS_EQUAL(1, caches.order);
  LONGS_EQUAL(2, sleepers.order);
}

TEST(Pressure, a_charge_that_cannot_fit_is_refused) {
  CHECK_FALSE(Pressure::charge(wanted, 10'000));
  LONGS_EQUAL(0, wanted.used());
}

TEST(Pressure, an_accounts_own_ceiling_asks_for_room_too) {
  idle.set_ceiling(500);
  CHECK_TRUE(Pressure::charge(idle, 100));
  LONGS_EQUAL(500, idle.used());
  idle.set_ceiling(SIZE_MAX);
}

TEST(Pressure, it_is_eased_below_the_low_water_mark) {
  Ledger::total().set_ceiling(Ledger::total().used() + 1);
  CHECK_FALSE(Pressure::eased());
  Ledger::total().set_ceiling(Ledger::total().used() * 2);
  CHECK_TRUE(Pressure::eased());
}

TEST(Pressure, a_want_that_passes_and_comes_again_is_told_once) {
  Told told;
  for (int times = 0; times < 3; ++times) {
    Pressure::took(comes_again);
    Ledger::total().set_ceiling(SIZE_MAX);
    CHECK_TRUE(Pressure::eased());
  }
  LONGS_EQUAL(3, comes_again.taken());
  LONGS_EQUAL(1, told.lines());
}

TEST(Pressure, a_removed_relief_is_not_called) {
  Pressure::remove(trim);
  CHECK_TRUE(Pressure::charge(wanted, 200));
  LONGS_EQUAL(300, cached.used());
  Pressure::add(trim);
}

}  // namespace pressure_test
