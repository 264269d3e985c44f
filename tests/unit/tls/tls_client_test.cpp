#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/program.h>
#include <coir/tls.h>
#include <string.h>

#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/tls_pair.h"

namespace tls_client_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::TlsContext;
using coir::TlsFault;
using coir::TlsPeer;
using coir::TlsStream;
using coir::TlsTicket;
using coir::test::Authority;
using coir::test::SocketPair;
using namespace std::chrono_literals;

namespace {

const Authority& authority() {
  static const Authority made("localhost");
  return made;
}

// A certificate of its own authority that names board.test in its subject alone, until 2049.
constexpr std::string_view kSubjectOnly =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBQzCB66ADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmJvYXJkLnRl\n"
    "c3QwHhcNMjAwMTAxMDAwMDAwWhcNNDkxMjMxMjM1OTU5WjAVMRMwEQYDVQQDDApi\n"
    "b2FyZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEVvmSaoH6ZJx7QQIl\n"
    "1LBrvgjBf8cQtapU3T5GrR/gx9Y0fW4GbssQ46/oNAKo89PgI36ACD4OwFbK5kaG\n"
    "PEfbX6MsMCowCQYDVR0TBAIwADAdBgNVHQ4EFgQUEeUfzXlGyel0+EKqr8mE09M6\n"
    "dekwCgYIKoZIzj0EAwIDRwAwRAIgeyI8aPkUjBorccD5WRwh5vk92jTtXSi2YkRf\n"
    "4KfX70wCIEDbX2/UCJf1bCVz64QfbJVwP73O6oKBla6imDxnchHH\n"
    "-----END CERTIFICATE-----\n";
constexpr std::string_view kSubjectOnlyKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDxMzD0RanWbKzJqn\n"
    "JaR6pfj9Ss+t3GFDxNJwqWerLQyhRANCAARW+ZJqgfpknHtBAiXUsGu+CMF/xxC1\n"
    "qlTdPkatH+DH1jR9bgZuyxDjr+g0Aqjz0+AjfoAIPg7AVsrmRoY8R9tf\n"
    "-----END PRIVATE KEY-----\n";

Deadline patience() {
  return Deadline::after(60s);
}

TlsContext client_with_tickets() {
  return *TlsContext::client({.authorities = authority().made.certificate, .tickets = true});
}

}  // namespace

TEST_GROUP_BASE(TlsClient, coir::test::Everywhere) {
  TlsContext server = authority().server();

  // visit is one session, over which the server says a word; returns the client's side, after it has read that.
  std::expected<TlsStream, coir::Error> visit(const TlsContext& client, const char* name, const TlsTicket& ticket) {
    SocketPair pair;
    auto serving = spawn([&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      if (stream) static_cast<void>(stream->write("word", patience()));
    });
    auto stream = TlsStream::connect(std::move(pair.client), client, name, ticket, patience());
    if (stream) {
      char buffer[8];
      expect(stream->read(buffer, patience()).has_value());
    }
    expect(serving.join().has_value());
    return stream;
  }

  TlsTicket ticket_of_visit(const TlsContext& client) {
    auto stream = visit(client, "localhost", TlsTicket());
    TlsTicket ticket = stream ? stream->ticket().value_or(TlsTicket()) : TlsTicket();
    expect(bool(ticket));
    return ticket;
  }
};

TEST(TlsClient, resumes_by_a_ticket) {
  everywhere([&] {
    const TlsContext client = client_with_tickets();
    TlsTicket ticket;
    for (const bool resumed : {false, true, true}) {
      auto stream = visit(client, "localhost", ticket);
      expect(stream && stream->resumed() == resumed);
      if (!stream) return;
      auto given = stream->ticket();
      expect(given.has_value());
      if (given) ticket = std::move(*given);
      // Each is given once.
      expect(stream->ticket().error() == ErrorCode::not_found);
    }
  });
}

TEST(TlsClient, a_read_that_may_not_wait_finds_what_stands_behind_a_ticket) {
  everywhere([&] {
    const TlsContext client = client_with_tickets();
    SocketPair pair;
    TlsStream served;
    auto serving = spawn([&] {
      auto accepted = TlsStream::accept(std::move(pair.server), server, patience());
      expect(accepted && accepted->write("word", patience()));
      if (accepted) served = std::move(*accepted);
    });
    auto stream = TlsStream::connect(std::move(pair.client), client, "localhost", TlsTicket(), patience());
    expect(serving.join() && stream);
    if (!stream) return;
    char buffer[8];
    const auto got = stream->read(buffer, Deadline::now());
    expect(got && std::string_view(buffer, *got) == "word");
    expect(stream->read(buffer, Deadline::now()).error() == ErrorCode::timed_out);
  });
}

TEST(TlsClient, gets_no_ticket_where_its_context_wants_none) {
  everywhere([&] {
    auto stream = visit(authority().client(), "localhost", TlsTicket());
    expect(stream && stream->ticket().error() == ErrorCode::not_found);
  });
}

TEST(TlsClient, offers_a_ticket_only_for_the_name_it_was_verified_for) {
  everywhere([&] {
    const TlsContext client = client_with_tickets();
    const TlsTicket ticket = ticket_of_visit(client);
    auto other = visit(client, "127.0.0.1", ticket);
    expect(other && !other->resumed());
    expect(visit(client, "elsewhere.test", ticket).error() == ErrorCode::untrusted);
  });
}

TEST(TlsClient, offers_a_ticket_only_under_the_policy_it_was_verified_by) {
  static const Authority stranger("localhost");
  everywhere([&] {
    const TlsContext careless = *TlsContext::client({.accept_any_peer_without_verifying_it = true, .tickets = true});
    const TlsTicket ticket = ticket_of_visit(careless);
    auto careful = visit(client_with_tickets(), "localhost", ticket);
    expect(careful && !careful->resumed());
    const TlsContext other = *TlsContext::client({.authorities = stranger.made.certificate, .tickets = true});
    expect(visit(other, "localhost", ticket).error() == ErrorCode::untrusted);
  });
}

TEST(TlsClient, is_refused_its_ticket_by_another_server_and_shakes_hands_in_full) {
  everywhere([&] {
    const TlsContext client = client_with_tickets();
    const TlsTicket ticket = ticket_of_visit(client);
    server = authority().server();  // which has other keys for its tickets
    auto second = visit(client, "localhost", ticket);
    expect(second && !second->resumed());
  });
}

TEST(TlsClient, a_ticket_is_on_the_ledger_and_goes_from_it) {
  const auto visits = [&] {
    const TlsContext client = client_with_tickets();
    auto stream = visit(client, "localhost", TlsTicket());
    expect(stream.has_value());
    if (!stream) return;
    const std::size_t before = coir::account::tls.used();
    {
      const auto ticket = stream->ticket();
      expect(ticket.has_value() && coir::account::tls.used() > before);
    }
    expect(coir::account::tls.used() == before);
  };
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, visits).has_value());
  const std::size_t kept = coir::account::tls.used();
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, visits).has_value());
  LONGS_EQUAL(kept, coir::account::tls.used());
  check();
}

TEST(TlsClient, has_to_name_its_server) {
  everywhere([&] {
    SocketPair pair;
    const auto stream = TlsStream::connect(std::move(pair.client), authority().client(), nullptr, patience());
    expect(!stream && stream.error() == ErrorCode::invalid);
  });
}

TEST(TlsClient, connects_to_a_host_by_name_and_verifies_that_name) {
  everywhere([&] {
    // localhost may be ::1 first, where nobody listens.
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    expect(listener.has_value());
    if (!listener) return;
    const std::uint16_t port = listener->local_address().port();
    static const Authority stranger("elsewhere.test");
    for (const bool trusted : {true, false}) {
      server = (trusted ? authority() : stranger).server();
      auto serving = spawn([&] {
        auto accepted = listener->accept(patience());
        expect(accepted.has_value());
        if (!accepted) return;
        auto stream = TlsStream::accept(std::move(*accepted), server, patience());
        expect(stream.has_value() == trusted);
      });
      const auto stream =
          coir::connect_tls("localhost", port, trusted ? authority().client() : stranger.client(), patience());
      expect(stream.has_value() == trusted);
      if (!stream) expect(stream.error() == ErrorCode::untrusted);
      expect(serving.join().has_value());
    }
    expect(coir::connect_tls(std::string_view("a\0b", 3), port, authority().client(), patience()).error() ==
           ErrorCode::invalid);
  });
}

// RFC 9525: the subject is a text for people. Its signer has not checked that it is a host.
TEST(TlsClient, trusts_no_name_that_only_the_subject_has) {
  everywhere([&] {
    const coir::TlsCertificate own[] = {{.chain = kSubjectOnly, .key = kSubjectOnlyKey}};
    server = *TlsContext::server({.certificates = own});
    const auto stream = visit(*TlsContext::client({.authorities = kSubjectOnly}), "board.test", TlsTicket());
    expect(!stream && stream.error() == ErrorCode::untrusted);
  });
}

TEST(TlsClient, is_known_to_a_server_that_remembers_its_clients) {
  static const Authority mine("owner of the board");
  everywhere([&] {
    const coir::TlsCertificate own[] = {authority().certificate()};
    const coir::TlsCertificate shown = mine.certificate();
    const TlsContext client =
        *TlsContext::client({.authorities = authority().made.certificate, .certificate = &shown, .tickets = true});
    for (const bool remembers : {true, false}) {
      server = *TlsContext::server(
          {.certificates = own, .client_authorities = mine.made.certificate, .remember_clients = remembers});
      SocketPair pair;
      auto serving = spawn([&] {
        auto stream = TlsStream::accept(std::move(pair.server), server, patience());
        expect(stream.has_value());
        if (!stream) return;
        const TlsPeer* const known = stream->client();
        expect((known != nullptr) == remembers);
        if (known != nullptr) {
          expect(strcmp(known->common_name, "owner of the board") == 0);
          char text[coir::kFingerprintBytes];
          expect(coir::fingerprint(mine.made.certificate, text).has_value());
          for (std::size_t i = 0; i < sizeof known->fingerprint; ++i)
            expect(strtoul(text + 3 * i, nullptr, 16) == known->fingerprint[i]);
        }
        static_cast<void>(stream->write("word", patience()));
      });
      auto stream = TlsStream::connect(std::move(pair.client), client, "localhost", patience());
      expect(stream.has_value());
      if (stream) {
        char buffer[8];
        expect(stream->read(buffer, patience()).has_value());
        // It would not know a client that resumes its session.
        expect(stream->ticket().has_value() == !remembers);
      }
      expect(serving.join().has_value());
    }
  });
}

TEST(TlsClient, an_empty_list_of_authorities_trusts_nobody_and_is_refused) {
  const coir::TlsCertificate fine[] = {authority().certificate()};
  for (const std::string_view nothing : {std::string_view(), std::string_view(""), std::string_view("\n\n")}) {
    const auto server = TlsContext::server({.certificates = fine, .client_authorities = nothing});
    CHECK_TRUE(!server && coir::tls_fault(server.error()).input == TlsFault::Input::authorities);
    const auto client = TlsContext::client({.authorities = nothing});
    CHECK_TRUE(!client && coir::tls_fault(client.error()).input == TlsFault::Input::authorities);
  }
}

TEST(TlsClient, a_fault_tells_which_input_it_is_of) {
  const coir::TlsCertificate good = authority().certificate();
  const auto at_fault = [](const TlsContext::Server& options) {
    return coir::tls_fault(TlsContext::server(options).error());
  };
  const coir::TlsCertificate no_chain[] = {good, {.chain = "x", .key = good.key}};
  const coir::TlsCertificate no_key[] = {good, {.chain = good.chain, .key = "x"}};
  const coir::TlsCertificate fine[] = {good};
  const char* const protocols[] = {""};
  CHECK_TRUE(at_fault({.certificates = no_chain}).input == TlsFault::Input::certificate);
  LONGS_EQUAL(1, at_fault({.certificates = no_chain}).certificate);
  CHECK_TRUE(at_fault({.certificates = no_key}).input == TlsFault::Input::key);
  LONGS_EQUAL(1, at_fault({.certificates = no_key}).certificate);
  CHECK_TRUE(at_fault({.certificates = fine, .client_authorities = "x"}).input == TlsFault::Input::authorities);
  CHECK_TRUE(at_fault({.certificates = fine, .protocols = protocols}).input == TlsFault::Input::protocols);
}

}  // namespace tls_client_test
