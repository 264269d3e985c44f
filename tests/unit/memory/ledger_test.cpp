// The ledger has a ceiling that holds, figures that add up and refusals that are counted, for any mix of threads.

#include <coir/config.h>
#include <coir/ledger.h>

#include <pthread.h>
#include <string.h>

#include <CppUTest/TestHarness.h>

namespace ledger_test {

namespace {

// Accounts live as long as the process, so that each test has its own.
constinit coir::Account plain("plain"), limited("limited"), first_of_two("first"), second_of_two("second"),
    listed("listed");

struct TotalCeiling {
  explicit TotalCeiling(std::size_t room) { coir::Ledger::total().set_ceiling(coir::Ledger::total().used() + room); }
  ~TotalCeiling() { coir::Ledger::total().set_ceiling(SIZE_MAX); }
};

}  // namespace

TEST_GROUP(Ledger) {};

TEST(Ledger, charges_and_refunds_add_up_in_the_account_and_in_the_total) {
  const std::size_t total = coir::Ledger::total().used();
  CHECK_TRUE(plain.charge(100));
  CHECK_TRUE(plain.charge(50));
  LONGS_EQUAL(150, plain.used());
  LONGS_EQUAL(total + 150, coir::Ledger::total().used());
  plain.refund(120);
  LONGS_EQUAL(30, plain.used());
  LONGS_EQUAL(150, plain.high_water());
  plain.refund(30);
  LONGS_EQUAL(total, coir::Ledger::total().used());
}

TEST(Ledger, an_account_refuses_what_would_pass_its_ceiling_and_counts_it) {
  const std::size_t total = coir::Ledger::total().used();
  limited.set_ceiling(1000);
  CHECK_TRUE(limited.charge(1000));
  CHECK_FALSE(limited.charge(1));
  LONGS_EQUAL(1, limited.refusals());
  LONGS_EQUAL(1000, limited.used());
  LONGS_EQUAL(total + 1000, coir::Ledger::total().used());
  limited.refund(1);
  CHECK_TRUE(limited.charge(1));
  CHECK_FALSE(limited.charge(SIZE_MAX));
  LONGS_EQUAL(1000, limited.used());
  limited.refund(1000);
}

TEST(Ledger, the_total_refuses_what_no_account_would) {
  TotalCeiling room(500);
  const std::uint64_t refusals = coir::Ledger::total().refusals();
  CHECK_TRUE(first_of_two.charge(300));
  CHECK_FALSE(second_of_two.charge(201));
  LONGS_EQUAL(0, second_of_two.used());
  LONGS_EQUAL(refusals + 1, coir::Ledger::total().refusals());
  CHECK_TRUE(second_of_two.charge(200));
  first_of_two.refund(300);
  second_of_two.refund(200);
}

TEST(Ledger, an_account_is_found_by_name_once_it_was_charged) {
  POINTERS_EQUAL(nullptr, coir::Ledger::find("listed"));
  CHECK_TRUE(listed.charge(1));
  POINTERS_EQUAL(&listed, coir::Ledger::find("listed"));
  listed.refund(1);
  int count = 0;
  for (const coir::Account* a = coir::Ledger::accounts(); a != nullptr; a = a->next())
    count += strcmp(a->name(), "listed") == 0;
  LONGS_EQUAL(1, count);
}

#if !COIR_SINGLE_WORKER
namespace {
constinit coir::Account shared("shared");
}

TEST(Ledger, threads_that_race_never_pass_the_ceiling_together) {
  constexpr std::size_t kCeiling = 10'000, kPiece = 100;
  shared.set_ceiling(kCeiling);
  const auto hammer = [](void*) -> void* {
    std::size_t over = 0;
    for (int i = 0; i < 20'000; ++i) {
      if (!shared.charge(kPiece)) continue;
      // Others that are about to be refused may show for a moment, a piece each.
      if (shared.high_water() > kCeiling) ++over;
      shared.refund(kPiece);
    }
    return reinterpret_cast<void*>(over);
  };
  pthread_t threads[4];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, hammer, nullptr);
  std::size_t over = 0;
  for (pthread_t thread : threads) {
    void* result = nullptr;
    pthread_join(thread, &result);
    over += reinterpret_cast<std::size_t>(result);
  }
  LONGS_EQUAL(0, over);
  LONGS_EQUAL(0, shared.used());
}
#endif

}  // namespace ledger_test
