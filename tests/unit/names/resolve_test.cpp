#include <coir/config.h>
#include <coir/net/address.h>

#include <CppUTest/TestHarness.h>
#include <coir/ledger.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include <string_view>

#include "tests/support/child.h"
#include "tests/support/name_server.h"
#include "tests/support/until.h"

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/runtime.h>
#endif

namespace resolve_test {

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

// lasts is true for what is to be asked for again within `span`, and not at once.
bool lasts(const std::expected<Addresses, Error>& found, std::chrono::seconds span) {
  return found && !found->valid_until().passed() && found->valid_until() <= Deadline::after(span);
}

bool is(const std::expected<Addresses, Error>& found, ErrorCode code) {
  if (!found && found.error() == code) return true;
  fprintf(stderr, "got %s\n", found ? "addresses" : describe(found.error()));
  return false;
}

}  // namespace

TEST_GROUP(Resolve) {  // with_server runs `body`, which returns whether all was right, in a process that asks a
  // NameServer; on a fiber where
  // there are some, and on the process's first thread.
  template <class Body>
  void with_server(const char* promise, Body body, const char* conf = NameServer::kConf) {
    const ChildEnd end = in_child([&] {
      NameServer server;
      if (const char* const why = server.start(conf); why != nullptr) {
        fprintf(stderr, "%s", why);
        return kNoServer;
      }
      if (!body(server)) return 1;
#if !COIR_NO_ASYNC
      for (const unsigned workers : {1u, 2u}) {
        bool right = false;
        if (!coir::run_until_idle({.workers = workers}, [&] { right = body(server); }) || !right) return 2;
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
};

TEST(Resolve, an_address_needs_no_thread_and_no_time) {
  const std::size_t used = coir::account::stacks.used();
  CHECK_TRUE(holds(resolve("192.0.2.1", 80, Deadline::now()), "192.0.2.1:80"));
  CHECK_TRUE(holds(resolve("2001:db8::1", 443, Deadline::now()), "[2001:db8::1]:443"));
  LONGS_EQUAL(used, coir::account::stacks.used());
}

TEST(Resolve, a_text_that_cannot_be_a_name_is_invalid) {
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

TEST(Resolve, the_first_of_many_addresses_are_returned) {
  with_server("of many addresses there are the first", [](NameServer&) {
    const auto found = resolve("many.example", 1);
    return found && found->size() == Addresses::kMost;
  });
}

TEST(Resolve, a_name_that_does_not_exist_is_not_found) {
  with_server("a name that does not exist is not found",
              [](NameServer&) { return is(resolve("missing.example", 80), ErrorCode::not_found); });
}

TEST(Resolve, an_alias_leads_to_its_addresses) {
  with_server("an alias leads to its addresses", [](NameServer&) {
    const auto found = resolve("alias.example", 80);
    return holds(found, "192.0.2.8:80") && found->size() == 1 && lasts(found, 30s);
  });
}

TEST(Resolve, aliases_that_go_round_in_circles_lead_nowhere) {
  with_server("aliases that go round in circles lead nowhere",
              [](NameServer&) { return is(resolve("circle.example", 80), ErrorCode::not_found); });
}

TEST(Resolve, an_answer_that_was_cut_off_is_fetched_by_tcp) {
  with_server("an answer that was cut off is fetched by TCP", [](NameServer&) {
    const auto found = resolve("long.example", 80);
    return found && found->size() == Addresses::kMost && holds(found, "192.0.2.100:80");
  });
}

TEST(Resolve, an_answer_to_another_question_is_dropped) {
  with_server("what answers another question is dropped", [](NameServer&) {
    const auto found = resolve("forged.example", 80);
    return found && found->size() == 1 && holds(found, "192.0.2.7:80");
  });
}

TEST(Resolve, a_server_that_refuses_is_named_as_such) {
  with_server("a server that refuses is named as such", [](NameServer&) {
    const auto found = resolve("refused.example", 80);
    return is(found, ErrorCode::system) && found.error().sys == EPROTO;
  });
}

TEST(Resolve, a_server_that_fails_is_a_temporary_failure) {
  with_server("a server that fails is a temporary failure",
              [](NameServer&) { return is(resolve("broken.example", 80), ErrorCode::temporary); });
}

TEST(Resolve, an_error_for_one_family_leaves_the_other_s_answer) {
  with_server("an error for one family leaves the other's answer", [](NameServer&) {
    // FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED
    for (const char* name : {"half1.example", "half2.example", "half3.example", "half4.example", "half5.example"}) {
      const auto found = resolve(name, 80);
      if (!found || found->size() != 1 || !holds(found, "192.0.2.7:80") || !lasts(found, 60s)) return false;
    }
    return true;
  });
}

TEST(Resolve, no_name_is_missing_before_both_families_are_answered) {
  with_server("no name is missing before both families are answered", [](NameServer&) {
    return is(resolve("half3s.example", 80, Deadline::after(50ms)), ErrorCode::timed_out) &&
           // Nothing was kept of it.
           is(resolve("half3s.example", 80, Deadline::after(50ms)), ErrorCode::timed_out);
  });
}

TEST(Resolve, where_nobody_listens_is_a_temporary_failure_at_once) {
  with_server(
      "where nobody listens is a temporary failure at once",
      [](NameServer&) {
        const Deadline patience = Deadline::after(50s);
        return is(resolve("both.example", 80), ErrorCode::temporary) && !patience.passed();
      },
      "nameserver 127.0.0.3\noptions timeout:60 attempts:1\n");
}

TEST(Resolve, the_second_server_is_asked_when_the_first_is_silent) {
  with_server(
      "the second server is asked when the first is silent",
      [](NameServer&) {
        const Deadline patience = Deadline::after(50s);
        return holds(resolve("second.example", 80), "192.0.2.7:80") && !patience.passed();
      },
      "nameserver 127.0.0.1\nnameserver 127.0.0.2\noptions timeout:60 attempts:1\n");
}

TEST(Resolve, the_second_server_is_asked_when_tcp_to_the_first_is_blocked) {
  with_server(
      "the second server is asked when TCP to the first is blocked",
      [](NameServer&) { return holds(resolve("walled.example", 80, Deadline::after(4s)), "192.0.2.7:80"); },
      "nameserver 127.0.0.1\nnameserver 127.0.0.2\noptions timeout:60 attempts:1\n");
}

TEST(Resolve, an_answer_is_kept_for_as_long_as_it_says) {
  with_server("an answer is kept for as long as it says", [](NameServer& server) {
    bool right = holds(resolve("both.example", 80), "192.0.2.7:80");
    const auto again = resolve("BOTH.example.", 443);
    right = right && holds(again, "192.0.2.7:443") && holds(again, "[2001:db8::7]:443") && lasts(again, 60s);
    return right && server.asked() == 2;
  });
}

TEST(Resolve, that_there_is_no_such_name_is_kept_too) {
  with_server("that there is no such name is kept too", [](NameServer& server) {
    const bool right = is(resolve("absent.example", 80), ErrorCode::not_found);
    until([&] { return server.asked() == 2; });
    return right && is(resolve("absent.example", 80), ErrorCode::not_found) && server.asked() == 2;
  });
}

TEST(Resolve, an_answer_for_this_moment_only_is_asked_again) {
  with_server("what is for this moment only is asked again", [](NameServer& server) {
    const int before = server.asked();
    bool right = true;
    for (int i = 1; i < 4; ++i) {
      right = right && holds(resolve("brief.example", 80), "192.0.2.7:80");
      until([&] { return server.asked() == before + 2 * i; });
    }
    return right;
  });
}

TEST(Resolve, a_short_name_is_looked_for_in_the_domains_of_the_machine) {
  with_server(
      "a short name is looked for in the domains of the machine",
      [](NameServer&) {
        // With a dot at its end a name is whole.
        return holds(resolve("near", 80), "192.0.2.7:80") && is(resolve("near.", 80), ErrorCode::not_found);
      },
      "nameserver 127.0.0.1\nsearch elsewhere.test example\n");
}

TEST(Resolve, localhost_is_this_machine_without_being_asked_for) {
  with_server("localhost is this machine, without being asked for", [](NameServer& server) {
    return holds(resolve("printer.LOCALHOST", 80), "127.0.0.1:80") && holds(resolve("localhost", 80), "127.0.0.1:80") &&
           server.asked() == 0;
  });
}

TEST(Resolve, an_address_needs_not_be_asked_for_again) {
  const auto found = resolve("192.0.2.1", 80);
  CHECK_TRUE(found && found->valid_until().is_never());
}

TEST(Resolve, a_link_s_own_address_names_its_device) {
  const auto found = resolve("fe80::1%lo", 80);
  CHECK_TRUE(found && found->size() == 1);
  CHECK_EQUAL(1u, reinterpret_cast<const sockaddr_in6*>((*found)[0].get())->sin6_scope_id);
  CHECK_TRUE(!resolve("fe80::1%nosuch", 80, Deadline::now()));
}

TEST(Resolve, labels_that_are_none_are_invalid) {
  char label[65];
  for (char& c : label) c = 'a';
  CHECK_TRUE(is(resolve("a..example", 80), ErrorCode::invalid));
  CHECK_TRUE(is(resolve(".", 80), ErrorCode::invalid));
  CHECK_TRUE(is(resolve(std::string_view(label, 64), 80), ErrorCode::invalid));
}

TEST(Resolve, a_server_that_never_answers_holds_nobody_past_the_deadline) {
  with_server("a server that never answers holds nobody past the deadline", [](NameServer&) {
    // The resolver's own patience ends after ten seconds at the earliest.
    const Deadline patience = Deadline::after(9s);
    return is(resolve("silent.example", 80, Deadline::after(20ms)), ErrorCode::timed_out) && !patience.passed();
  });
}

TEST(Resolve, an_answer_that_is_none_is_an_error_by_the_deadline) {
  with_server("an answer that is none is an error by the deadline", [](NameServer&) {
    const Deadline patience = Deadline::after(9s);
    return !resolve("garbage.example", 80, Deadline::after(200ms)) && !patience.passed();
  });
}

TEST(Resolve, a_lookup_needs_no_thread) {
  with_server("a lookup needs no thread", [](NameServer&) {
    const std::size_t before = coir::account::stacks.used();
    const bool right = is(resolve("silent.example", 80, Deadline::after(20ms)), ErrorCode::timed_out);
    return right && coir::account::stacks.used() == before;
  });
}

#if !COIR_NO_ASYNC

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

}  // namespace resolve_test
