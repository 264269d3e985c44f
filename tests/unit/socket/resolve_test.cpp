#include <coir/config.h>
#include <coir/net/resolve.h>

#include <CppUTest/TestHarness.h>
#include <coir/ledger.h>
#include <stdio.h>

#include <string_view>

#include "tests/support/child.h"
#include "tests/support/name_server.h"
#include "tests/support/until.h"

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/runtime.h>
#endif

using namespace std::chrono_literals;
using coir::Addresses;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::resolve;
using coir::test::ChildEnd;
using coir::test::in_child;
using coir::test::NameServer;
using coir::test::until;

namespace {

constexpr int kNoServer = 77;

bool holds(const std::expected<Addresses, Error>& found, std::string_view text) {
  for (std::size_t i = 0; found && i < found->size(); ++i) {
    char room[coir::Address::kMaxText];
    if ((*found)[i].format(room) == text) return true;
  }
  return false;
}

bool is(const std::expected<Addresses, Error>& found, ErrorCode code) {
  if (!found && found.error() == code) return true;
  fprintf(stderr, "got %s\n", found ? "addresses" : describe(found.error()));
  return false;
}

}  // namespace

TEST_GROUP(Resolve){// with_server runs `body`, which returns whether all was right, in a process that asks a
                    // NameServer; on a fiber where
                    // there are some, and on the process's first thread.
                    template <class Body> void with_server(const char* promise, Body body){
                        const ChildEnd end = in_child([&] {
                          NameServer server;
                          if (const char* const why = server.start(); why != nullptr) {
                            fprintf(stderr, "%s", why);
                            return kNoServer;
                          }
                          if (!body(server)) return 1;
#if !COIR_NO_ASYNC
                          for (const unsigned workers : {1u, 2u}) {
                            bool right = false;
                            if (!coir::run_until_idle({.workers = workers}, [&] { right = body(server); }) || !right)
                              return 2;
                          }
#endif
                          return 0;
                        });
if (end.status == kNoServer) {
  printf("ok - %s # SKIP %s\n", promise, end.output);
  return;
}
STRCMP_EQUAL("", end.output);
LONGS_EQUAL(0, end.signal);
LONGS_EQUAL(0, end.status);
}
}
;

TEST(Resolve, an_address_needs_no_thread_and_no_time) {
  const std::size_t used = coir::account::stacks.used();
  CHECK_TRUE(holds(resolve("192.0.2.1", 80, Deadline::now()), "192.0.2.1:80"));
  CHECK_TRUE(holds(resolve("2001:db8::1", 443, Deadline::now()), "[2001:db8::1]:443"));
  LONGS_EQUAL(used, coir::account::stacks.used());
}

TEST(Resolve, what_cannot_be_a_name_is_invalid) {
  char longer[300];
  for (char& c : longer) c = 'a';
  CHECK_TRUE(is(resolve("", 80), ErrorCode::invalid));
  CHECK_TRUE(is(resolve(std::string_view("a\0b", 3), 80), ErrorCode::invalid));
  CHECK_TRUE(is(resolve(std::string_view(longer, 255), 80), ErrorCode::invalid));
}

TEST(Resolve, a_name_gives_its_addresses_of_both_families) {
  with_server("a name gives its addresses of both families", [](NameServer&) {
    const auto found = resolve("both.example", 8080);
    return found && found->size() == 2 && holds(found, "192.0.2.7:8080") && holds(found, "[2001:db8::7]:8080");
  });
}

TEST(Resolve, the_machines_own_table_comes_first) {
  with_server("the machine's own table comes first",
              [](NameServer& server) { return holds(resolve("board", 80), "192.0.2.1:80") && server.asked() == 0; });
}

TEST(Resolve, of_many_addresses_there_are_the_first) {
  with_server("of many addresses there are the first", [](NameServer&) {
    const auto found = resolve("many.example", 1);
    return found && found->size() == Addresses::kMost;
  });
}

TEST(Resolve, a_name_that_does_not_exist_is_not_found) {
  with_server("a name that does not exist is not found",
              [](NameServer&) { return is(resolve("missing.example", 80), ErrorCode::not_found); });
}

#if !COIR_NO_ASYNC

namespace {

// With one worker a plain thread waits for the resolver itself; with many it does not.
bool waits_in_place() {
  return !coir::kManyWorkers && coir::current().id() == 0;
}

}  // namespace

TEST(Resolve, a_server_that_never_answers_holds_nobody_past_the_deadline) {
  with_server("a server that never answers holds nobody past the deadline", [](NameServer&) {
    if (waits_in_place()) return true;
    // The resolver's own patience ends after ten seconds at the earliest.
    const Deadline patience = Deadline::after(9s);
    return is(resolve("silent.example", 80, Deadline::after(20ms)), ErrorCode::timed_out) && !patience.passed();
  });
}

TEST(Resolve, an_answer_that_is_none_is_an_error_by_the_deadline) {
  with_server("an answer that is none is an error by the deadline", [](NameServer&) {
    if (waits_in_place()) return true;
    const Deadline patience = Deadline::after(9s);
    return !resolve("garbage.example", 80, Deadline::after(200ms)) && !patience.passed();
  });
}

TEST(Resolve, a_server_that_fails_is_a_temporary_failure_or_a_late_one) {
  with_server("a server that fails is a temporary failure, or a late one", [](NameServer&) {
    if (waits_in_place()) return true;
    const auto found = resolve("broken.example", 80, Deadline::after(200ms));
    return !found && (found.error() == ErrorCode::temporary || found.error() == ErrorCode::timed_out);
  });
}

TEST(Resolve, a_late_answer_is_dropped_and_its_thread_goes_away) {
  with_server("a late answer is dropped and its thread goes away", [](NameServer& server) {
    if (coir::current().id() == 0) return true;
    server.hold();
    const std::size_t before = coir::account::stacks.used();
    const bool late = is(resolve("late.example", 80, Deadline::after(20ms)), ErrorCode::timed_out);
    const bool held = coir::account::stacks.used() > before;  // unless a thread of an earlier call was there
    server.release();
    // In single-worker builds the stack is refunded by the next call.
    until([&] { return !coir::kManyWorkers || coir::account::stacks.used() <= before; });
    return late && (held || before != 0);
  });
}

TEST(Resolve, a_cancelled_fiber_goes_on_at_once) {
  with_server("a cancelled fiber goes on at once", [](NameServer& server) {
    if (coir::current().id() == 0) return true;
    const int before = server.asked();
    coir::Task<bool> asking = coir::spawn([] { return is(resolve("silent.example", 80), ErrorCode::cancelled); });
    until([&] { return server.asked() != before; });
    return asking.cancel() && asking.await().value_or(false);
  });
}

#endif
