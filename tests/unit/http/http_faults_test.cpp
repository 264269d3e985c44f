// Want of memory or descriptors at any one point of a request: the n-th charge to the ledger is refused, or the n-th
// call to the kernel of a kind fails, for n = 1, 2, 3 ... until a request meets none. Each time the client gets its
// answer, or a refusal that cannot be taken for one; the next is served as if nothing had been; nothing is left over.

#include <CppUTest/TestHarness.h>
#include <coir/ledger.h>
#include <coir/program.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <initializer_list>
#include <span>

#include "tests/support/faults.h"
#include "tests/support/scale.h"
#include "tests/unit/http/faults_client.h"
#include "tests/unit/http/faults_server.h"

namespace http_faults_test {

using namespace coir::test;

namespace {

constexpr Scenario kScenarios[] = {
    {"a small file", "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, 100},
    {"a large file", "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, kLargeBytes},
    {"a part of it", "GET /large HTTP/1.1\r\nHost: localhost\r\nRange: bytes=100-200099\r\n\r\n", 206, 200'000},
    {"a directory", "GET /dir/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, 100},
    {"a file that is not there", "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, 14},
    {"content in chunks",
     "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n", 200,
     1},
    {"an answer in chunks", "GET /chunks HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, kLargeBytes},
    {"an answer that ends with the connection", "GET /chunks HTTP/1.0\r\n\r\n", 200, kLargeBytes, true},
    {"a head in two pieces", "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, 100, false, 30},
    {"the metrics", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, 0},
};

constexpr Setting kSettings[] = {{2, false}, {1, true}, {1, false}, {2, true}};
// Without fibers there is one. The first two meet every line of code.
constexpr std::size_t kSettingsTried =
    !coir::kFibers ? 1 : scaled({.plain = 4, .address_sanitized = 2, .thread_sanitized = 2, .emulated = 1});

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {
    {Call::charge, 0},         {Call::accept4, EMFILE},   {Call::accept4, ENOBUFS}, {Call::accept4, ENOMEM},
    {Call::epoll_ctl, ENOMEM}, {Call::epoll_ctl, ENOSPC}, {Call::eventfd, EMFILE},  {Call::epoll_create1, EMFILE},
    {Call::fstat, ENOMEM},     {Call::madvise, ENOSYS},   {Call::mmap, ENOMEM},     {Call::mprotect, ENOMEM},
    {Call::open, EMFILE},      {Call::openat, ENFILE},    {Call::openat2, EMFILE},  {Call::openat2, ENOMEM},
    {Call::poll, ENOMEM},      {Call::ppoll, ENOMEM},     {Call::preadv2, ENOMEM},  {Call::recv, ENOMEM},
    {Call::send, ENOBUFS},     {Call::sendfile, ENOMEM},  {Call::sendmsg, ENOMEM},  {Call::pthread_create, EAGAIN},
    {Call::pread, ENOMEM},     {Call::pread, EIO},        {Call::preadv2, EIO},     {Call::openat2, ENFILE},
};

// Old kernels of the board have no epoll.
bool has_epoll() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll >= 0) close(epoll);
  return epoll >= 0;
}

}  // namespace

TEST_GROUP_BASE(HttpFaults, FaultyServer) {
  unsigned failed_calls[kCalls] = {};

  // try_every lets each call of a kind fail once while one client is served.
  void try_every(const Kind& kind, const Scenario& scenario, const Left& before, bool lasting) {
    for (unsigned nth = 1;; ++nth) {
      fault = {.call = kind.call, .error = kind.error, .nth = nth, .lasting = lasting};
      stage = scenario.name;
      inject(fault);
      visit(scenario);
      require(lasting || quiet(), "stays connected");
      const unsigned failed = withdraw();
      failed_calls[static_cast<unsigned>(kind.call)] += failed;
      require(quiet(), "stays connected");
      if (failed != 0) {
        visit(scenario);
        require(quiet(), "stays connected afterwards");
      }
      require(is_as_before(before), "leaves something behind");
      if (failed == 0) return;
      require(nth < 1000, "never comes to an end");
    }
  }

  // within runs the body with a server, for each of the settings.
  template <class Body>
  void within(Body body) {
    for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
      setting = each;
      fault = {};
      CHECK(begin());
      for (const Scenario& scenario : kScenarios) {
        stage = scenario.name;
        visit(scenario);
      }
      CHECK(quiet());
      body(rest());
      end();
      nothing_is_left();
    }
  }

  // met checks that the calls which every server makes have failed at all.
  void met(std::initializer_list<Call> calls) const {
    for (const Call call : calls) {
      if (failed_calls[static_cast<unsigned>(call)] == 0) FAIL(name_of(call));
    }
  }
};

TEST(HttpFaults, a_refused_charge_refuses_one_piece_of_work) {
  within([this](const Left& before) {
    for (const Scenario& scenario : kScenarios) try_every({Call::charge, 0}, scenario, before, false);
  });
  met({Call::charge});
}

TEST(HttpFaults, charges_that_stay_refused_do_so_as_well) {
  within([this](const Left& before) { try_every({Call::charge, 0}, kScenarios[0], before, true); });
}

TEST(HttpFaults, a_call_to_the_kernel_that_fails_fails_one_piece_of_work) {
  within([this](const Left& before) {
    for (const Kind& kind : kKinds) {
      if (kind.call == Call::charge) continue;
      for (const Scenario& scenario : kScenarios) try_every(kind, scenario, before, false);
    }
  });
  met({Call::accept4, Call::fstat, Call::open, Call::recv, Call::send, Call::sendfile, Call::sendmsg});
  // QEMU's user mode has no preadv2.
  met({failed_calls[static_cast<unsigned>(Call::preadv2)] != 0 ? Call::preadv2 : Call::pread});
  met({!coir::kFibers ? Call::poll : has_epoll() ? Call::epoll_ctl : Call::ppoll});
}

TEST(HttpFaults, calls_to_the_kernel_that_fail_for_a_while_are_made_again) {
  within([this](const Left& before) {
    for (const Kind& kind : kKinds) {
      fault = {.call = kind.call, .error = kind.error, .nth = 1, .lasting = true};
      for (const Scenario& scenario : {kScenarios[0], kScenarios[1]}) {
        stage = scenario.name;
        inject(fault);
        {
          // The client may get no further than the backlog. No client is slow before something has failed.
          Client client(port, 100);
          Client::Heard heard = client.ask(scenario);
          const coir::Deadline deadline = coir::Deadline::after(std::chrono::seconds(kPatienceSeconds));
          while (heard == Client::Heard::silence && failures() == 0 && !deadline.passed()) {
            heard = client.listen(scenario);
          }
          require(heard != Client::Heard::false_whole, "gets a wrong answer that looks whole");
          require(heard == Client::Heard::answer || failures() != 0, "gets no answer though nothing failed");
          withdraw();
        }
        visit(scenario);
        require(is_as_before(before), "leaves something behind");
      }
    }
  });
}

TEST(HttpFaults, a_server_ends_though_a_call_to_the_kernel_fails) {
  for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
    setting = each;
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        CHECK(begin());
        stage = "the end";
        visit(kScenarios[0]);
        fault = {.call = kind.call, .error = kind.error, .nth = nth};
        inject(fault);
        end();
        const unsigned failed = withdraw();
        require(clean_end, "cuts somebody off");
        nothing_is_left();
        if (failed == 0) break;
        require(nth < 1000, "never comes");
      }
    }
  }
}

TEST(HttpFaults, a_server_that_cannot_start_says_so_and_leaves_nothing) {
  // A process keeps the wakeup of its first wait for a signal.
  setting = kSettings[0];
  require(begin(), "does not start");
  end();
  const int descriptors = count_fds();
  for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
    setting = each;
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        fault = {.call = kind.call, .error = kind.error, .nth = nth};
        stage = "the first client";
        inject(fault);
        if (begin()) {
          visit(kScenarios[0]);
          require(quiet(), "stays connected");
          const unsigned failed = withdraw();
          if (failed != 0) visit(kScenarios[0]);
          end();
          nothing_is_left();
          require(count_fds() == descriptors, "leaves a descriptor");
          if (failed == 0) break;
        } else {
          require(withdraw() != 0, "keeps the server from starting though nothing failed");
          nothing_is_left();
          require(count_fds() == descriptors, "leaves a descriptor");
        }
        require(nth < 1000, "never comes to an end");
      }
    }
  }
}

}  // namespace http_faults_test
