// The rules of RFC 6762, each by its section, on a network and a clock of the test's own.
#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/config.h>
#include <coir/program.h>

#include "network.h"

namespace mdns_test {

using namespace coir;
using namespace coir::test;

namespace {

using names::RecordWriter;

names::Name name_of(std::string_view text) {
  names::Name name;
  CHECK_TRUE(name.set(text));
  return name;
}

// Query is a message of the test's own.
struct Query {
  unsigned char room[1500];
  RecordWriter out;

  explicit Query(std::uint16_t flags = 0, std::uint16_t id = 0) : out(room, {.id = id, .flags = flags}) {}
  Query& ask(const char* name, std::uint16_t type, bool unicast = false) {
    CHECK_TRUE(out.ask(name_of(name), type, names::kClassIn | (unicast ? names::kUnicastWanted : 0)));
    return *this;
  }
  Query& pointer(const char* name, const char* to, std::uint32_t ttl, RecordWriter::Section in = RecordWriter::answer) {
    out.begin(in, name_of(name), names::kTypePtr, names::kClassIn, ttl);
    out.name(name_of(to));
    CHECK_TRUE(out.end());
    return *this;
  }
  Query& address(const char* name, std::array<unsigned char, 4> at, std::uint32_t ttl,
                 RecordWriter::Section in = RecordWriter::answer) {
    out.begin(in, name_of(name), names::kTypeA, names::kClassIn, ttl);
    out.bytes(at);
    CHECK_TRUE(out.end());
    return *this;
  }
  std::string text() {
    const auto bytes = out.message();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
};

constexpr std::uint16_t kResponse = names::MessageHeader::kResponse;
constexpr const char* kInstance = "board._http._tcp.local";

std::string ask(const char* name, std::uint16_t type, bool unicast = false) {
  return Query().ask(name, type, unicast).text();
}

}  // namespace

TEST_GROUP(Mdns) {
  Network network;

  // board is a host at 10.0.0.1, long after its announcements.
  Network::Host& board() {
    Network::Host& host = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
    network.run(10'000);
    network.forget();
    return host;
  }
};

TEST(Mdns, a_name_is_probed_for_three_times_before_it_is_announced_twice) {  // 8.1, 8.3
  Network::Host& host = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  network.run(10'000);
  const auto& said = network.said();
  CHECK_EQUAL(5u, said.size());
  for (std::size_t i = 0; i < 3; ++i) {
    const Lines probe = read(said[i].bytes);
    CHECK_TRUE(has(probe.questions, "ANY board.local QU"));
    CHECK_TRUE(has(probe.questions, "ANY board._http._tcp.local QU"));
    CHECK_TRUE(has(probe.authorities, "A board.local 10.0.0.1 120"));
    CHECK_FALSE(has(probe.authorities, "A board.local 10.0.0.1 120 flush"));
    CHECK_TRUE(has(probe.authorities, "SRV board._http._tcp.local 80 board.local 120"));
    CHECK_TRUE(probe.answers.empty());
    CHECK_EQUAL(i == 0 ? 0 : 250, said[i].at - said[i == 0 ? 0 : i - 1].at);
  }
  CHECK_EQUAL(250, said[3].at - said[2].at);
  CHECK_EQUAL(1000, said[4].at - said[3].at);
  for (std::size_t i = 3; i < 5; ++i) {
    const Lines announced = read(said[i].bytes);
    CHECK_TRUE(has(announced.answers, "A board.local 10.0.0.1 120 flush"));
    CHECK_TRUE(has(announced.answers, "PTR 1.0.0.10.in-addr.arpa board.local 120 flush"));
    CHECK_TRUE(has(announced.answers, "SRV board._http._tcp.local 80 board.local 120 flush"));
    CHECK_TRUE(has(announced.answers, "TXT board._http._tcp.local path=/ 4500 flush"));
    CHECK_TRUE(has(announced.answers, "PTR _services._dns-sd._udp.local _http._tcp.local 4500"));
    // Others have pointers of that name: they stay.
    CHECK_TRUE(has(announced.answers, "PTR _http._tcp.local board._http._tcp.local 4500"));
    CHECK_FALSE(has(announced.answers, "PTR _http._tcp.local board._http._tcp.local 4500 flush"));
  }
  CHECK_EQUAL(1u, host.names.size());
  STRCMP_EQUAL("board", host.names[0].c_str());
}

TEST(Mdns, an_answer_tells_what_will_be_asked_next) {  // 6, RFC 6763 12
  board();
  network.say(ask("BOARD.local", names::kTypeA));
  CHECK_EQUAL(1, network.answers("A board.local 10.0.0.1 120 flush"));
  const Lines lines = read(network.said().back().bytes);
  CHECK_TRUE(has(lines.additionals, "NSEC board.local 40 120 flush"));
  network.run(5'000);
  network.forget();
  network.say(ask("_http._tcp.local", names::kTypePtr));
  network.run(200);
  CHECK_EQUAL(1, network.answers("PTR _http._tcp.local board._http._tcp.local"));
  const Lines more = read(network.said().back().bytes);
  CHECK_TRUE(has(more.additionals, "SRV board._http._tcp.local 80"));
  CHECK_TRUE(has(more.additionals, "TXT board._http._tcp.local path=/"));
  CHECK_TRUE(has(more.additionals, "A board.local 10.0.0.1"));
}

TEST(Mdns, unicast_answers_have_a_rate) {
  board();
  for (int i = 0; i < 1000; ++i) network.say(Query(0, 7).ask("board.local", names::kTypeA).text(), 99, 1234);
  CHECK_EQUAL(40, network.answers("A board.local", true));
  // If a unicast answer is over the rate, the group gets the answer instead, at its own rate.
  for (int i = 0; i < 1000; ++i) network.say(ask("board.local", names::kTypeA, true));
  CHECK_EQUAL(40, network.answers("A board.local", true));
  CHECK_EQUAL(1, network.answers("A board.local"));
  network.run(1'000);
  network.forget();
  for (int i = 0; i < 1000; ++i) network.say(Query(0, 7).ask("board.local", names::kTypeA).text(), 99, 1234);
  CHECK_EQUAL(20, network.answers("A board.local", true));
}

TEST(Mdns, a_record_that_a_name_lacks_is_denied) {  // 6.1
  board();
  network.say(ask("board.local", names::kTypeAaaa));
  CHECK_EQUAL(1, network.answers("NSEC board.local 40 120 flush"));
  network.say(ask(kInstance, names::kTypeA));
  CHECK_EQUAL(1, network.answers("NSEC board._http._tcp.local"));
}

TEST(Mdns, answers_that_are_known_are_not_given) {  // 7.1
  board();
  const auto asked = [](std::uint32_t ttl) {
    return Query().ask("_http._tcp.local", names::kTypePtr).pointer("_http._tcp.local", kInstance, ttl).text();
  };
  network.say(asked(2250));
  network.run(1'000);
  CHECK_EQUAL(0u, network.said().size());
  // Known for less than half of its life.
  network.say(asked(2249));
  network.run(1'000);
  CHECK_EQUAL(1, network.answers("PTR _http._tcp.local"));
}

TEST(Mdns, known_answers_of_several_messages_are_waited_for) {  // 7.2
  board();
  const std::string first = Query(names::MessageHeader::kTruncated).ask("_http._tcp.local", names::kTypePtr).text();
  network.say(first);
  network.run(300);
  network.say(Query().pointer("_http._tcp.local", kInstance, 4500).text());
  network.run(1'000);
  CHECK_EQUAL(0u, network.said().size());
  // Those of another asker say nothing.
  network.say(first);
  network.say(Query().pointer("_http._tcp.local", kInstance, 4500).text(), 98);
  network.run(399);
  CHECK_EQUAL(0u, network.said().size());
  network.run(102);
  CHECK_EQUAL(1, network.answers("PTR _http._tcp.local"));
}

TEST(Mdns, a_shared_record_is_answered_after_a_random_moment) {  // 6
  board();
  const std::int64_t asked = network.now;
  network.say(ask("_http._tcp.local", names::kTypePtr));
  CHECK_EQUAL(0u, network.said().size());
  network.run(500);
  const std::int64_t took = network.said().front().at - asked;
  CHECK_TRUE(took >= 20 && took <= 120);
}

TEST(Mdns, a_record_goes_to_the_group_once_a_second) {  // 6
  board();
  for (int i = 0; i < 50; ++i) {
    network.say(ask("board.local", names::kTypeA), static_cast<unsigned char>(50 + i));
    network.run(10);
  }
  CHECK_EQUAL(1, network.answers("A board.local"));
  network.run(2'000);
  CHECK_EQUAL(2, network.answers("A board.local"));
  CHECK_EQUAL(1000, network.said().back().at - network.said().front().at);
}

TEST(Mdns, a_unicast_answer_is_given_where_the_group_has_heard_it_lately) {  // 5.4
  board();
  network.say(ask("board.local", names::kTypeA, true));
  CHECK_EQUAL(1, network.answers("A board.local 10.0.0.1 120 flush", true));
  network.run(30'000);  // a quarter of its life
  network.forget();
  network.say(ask("board.local", names::kTypeA, true));
  CHECK_EQUAL(0, network.answers("A board.local", true));
  CHECK_EQUAL(1, network.answers("A board.local"));
}

TEST(Mdns, a_plain_resolver_is_answered_as_by_a_server) {  // 6.7
  board();
  network.say(Query(0, 4711).ask("board.local", names::kTypeA).text(), 99, 40'000);
  CHECK_EQUAL(1u, network.said().size());
  CHECK_TRUE(network.said()[0].unicast);
  const std::string& bytes = network.said()[0].bytes;
  CHECK_EQUAL(4711, static_cast<unsigned char>(bytes[0]) << 8 | static_cast<unsigned char>(bytes[1]));
  const Lines lines = read(bytes);
  CHECK_TRUE(has(lines.questions, "A board.local"));
  CHECK_TRUE(has(lines.answers, "A board.local 10.0.0.1 10"));
  CHECK_FALSE(has(lines.answers, "A board.local 10.0.0.1 10 flush"));
}

TEST(Mdns, only_the_local_link_is_answered) {  // 11
  Network::Host& host = board();
  const Address far = Network::peer({192, 0, 2, 7}, 5353);
  network.give(host, ask("board.local", names::kTypeA), far, 1, false);
  network.give(host, ask("board.local", names::kTypeA), Network::peer({192, 0, 2, 7}, 4000), 1, true);
  network.give(host, ask("board.local", names::kTypeA), Network::peer({10, 0, 0, 9}, 5353), 2, true);
  CHECK_EQUAL(0u, network.said().size());
  // To the group, so it comes from the link: but the answer goes to the group.
  network.give(host, ask("board.local", names::kTypeA, true), far, 1, true);
  CHECK_EQUAL(1, network.answers("A board.local"));
}

TEST(Mdns, a_name_that_another_has_is_changed_told_and_kept) {  // 8.1, 9
  board();
  Network::Host& late = network.add("board", {interface(1, {ipv4({10, 0, 0, 2})})});
  network.run(5'000);
  CHECK_EQUAL(1u, late.names.size());
  STRCMP_EQUAL("board-2", late.names[0].c_str());
  CHECK_EQUAL(2, network.answers("A board-2.local 10.0.0.2 120 flush"));
  CHECK_EQUAL(2, network.answers("SRV board-2._http._tcp.local 80 board-2.local"));
  // A third, and the second again after its link was gone.
  Network::Host& third = network.add("Board", {interface(1, {ipv4({10, 0, 0, 3})})});
  network.run(5'000);
  STRCMP_EQUAL("Board-3", third.names.back().c_str());
  late.responder.set_interfaces({}, network.now);
  late.responder.set_interfaces(late.interfaces, network.now);
  network.run(5'000);
  CHECK_EQUAL(1u, late.names.size());
}

TEST(Mdns, one_of_two_that_probe_at_once_keeps_the_name) {  // 8.2
  Network::Host& low = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  Network::Host& high = network.add("board", {interface(1, {ipv4({10, 0, 0, 2})})});
  network.run(10'000);
  STRCMP_EQUAL("board", high.names.back().c_str());
  STRCMP_EQUAL("board-2", low.names.back().c_str());
  CHECK_EQUAL(1u, high.names.size());
  CHECK_EQUAL(1u, low.names.size());
}

TEST(Mdns, two_networks_that_are_joined_settle_on_two_names) {  // 9
  Network::Host& one = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  Network::Host& two = network.add("board", {interface(1, {ipv4({10, 0, 0, 2})})});
  two.connected = false;
  network.run(5'000);
  STRCMP_EQUAL("board", one.names.back().c_str());
  STRCMP_EQUAL("board", two.names.back().c_str());
  two.connected = true;
  network.run(2'000);
  network.say(ask("board.local", names::kTypeA));
  network.run(20'000);
  CHECK_EQUAL(2u, one.names.size() + two.names.size() - 1);
  STRCMP_EQUAL("board-2", (one.names.size() == 2 ? one : two).names.back().c_str());
}

TEST(Mdns, a_name_that_nobody_contests_by_more_than_a_claim_stays) {  // 9
  Network::Host& host = board();
  // Somebody claims it once, and does not defend it.
  network.say(Query(kResponse).address("board.local", {10, 0, 0, 66}, 120).text());
  network.run(10'000);
  CHECK_EQUAL(3, network.probes(0));
  CHECK_EQUAL(2, network.answers("A board.local 10.0.0.1 120 flush"));
  CHECK_EQUAL(1u, host.names.size());
}

TEST(Mdns, a_claim_from_no_responders_port_changes_nothing) {  // 11
  board();
  network.say(Query(kResponse).address("board.local", {10, 0, 0, 66}, 120).text(), 99, 6000);
  network.run(5'000);
  CHECK_EQUAL(0u, network.said().size());
}

TEST(Mdns, a_host_on_one_link_by_two_interfaces_does_not_answer_or_rename_itself) {
  Network::Host& host =
      network.add("board", {interface(1, {ipv4({10, 0, 0, 1})}), interface(2, {ipv4({10, 0, 0, 2})})});
  network.run(60'000);
  CHECK_EQUAL(1u, host.names.size());
  STRCMP_EQUAL("board", host.names[0].c_str());
  CHECK_EQUAL(6, network.probes(0));
  // Two announcements by each interface, and by none the other's address.
  CHECK_EQUAL(10u, network.said().size());
  for (const auto& each : network.said()) {
    const Lines lines = read(each.bytes);
    CHECK_FALSE(has(lines.answers, each.interface == 1 ? "A board.local 10.0.0.2" : "A board.local 10.0.0.1"));
  }
}

TEST(Mdns, a_late_echo_of_its_own_message_is_known_by_its_address) {
  Network::Host& host =
      network.add("board", {interface(1, {ipv4({10, 0, 0, 1})}), interface(2, {ipv4({10, 0, 0, 2})})});
  network.run(10'000);
  network.forget();
  // A bridge that sleeps says later what it heard, in words of its own.
  network.say(Query(kResponse).address("board.local", {10, 0, 0, 2}, 120).text(), 2);
  network.run(10'000);
  CHECK_EQUAL(0, network.probes(0));
  CHECK_EQUAL(1u, host.names.size());
}

TEST(Mdns, a_link_that_comes_back_is_announced_on_again) {  // 8.4
  Network::Host& host = board();
  host.responder.set_interfaces({}, network.now);
  network.run(1'000);
  network.say(ask("board.local", names::kTypeA));
  CHECK_EQUAL(0u, network.said().size());
  host.responder.set_interfaces(host.interfaces, network.now);
  network.run(5'000);
  CHECK_EQUAL(3, network.probes(0));
  CHECK_EQUAL(2, network.answers("A board.local 10.0.0.1 120 flush"));
}

TEST(Mdns, another_address_is_announced_and_the_same_is_not) {  // 8.4
  Network::Host& host = board();
  host.responder.set_interfaces(host.interfaces, network.now);
  network.run(5'000);
  CHECK_EQUAL(0u, network.said().size());
  host.interfaces.list[0] = interface(1, {ipv4({10, 0, 0, 7})});
  host.responder.set_interfaces(host.interfaces, network.now);
  network.run(5'000);
  CHECK_EQUAL(2, network.answers("A board.local 10.0.0.7 120 flush"));
  CHECK_EQUAL(0, network.answers("A board.local 10.0.0.1"));
}

TEST(Mdns, another_hardware_address_is_announced) {  // 8.4
  Network::Host& host = board();
  host.interfaces.list[0].hardware = 1;
  host.responder.set_interfaces(host.interfaces, network.now);
  network.run(5'000);
  CHECK_EQUAL(2, network.answers("A board.local 10.0.0.1 120 flush"));
}

TEST(Mdns, a_goodbye_takes_every_record_back) {  // 10.1
  Network::Host& host = board();
  host.responder.stop(network.room());
  CHECK_EQUAL(1u, network.said().size());
  const Lines lines = read(network.said()[0].bytes);
  for (const auto& line : lines.answers) CHECK_TRUE(line.ends_with(" 0"));
  CHECK_TRUE(has(lines.answers, "PTR _http._tcp.local board._http._tcp.local 0"));
  CHECK_TRUE(has(lines.answers, "A board.local 10.0.0.1 0"));
  CHECK_EQUAL(6u, lines.answers.size());
}

TEST(Mdns, a_name_that_was_not_announced_needs_no_goodbye) {
  Network::Host& host = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  network.run(400);
  network.forget();
  host.responder.stop(network.room());
  CHECK_EQUAL(0u, network.said().size());
}

TEST(Mdns, a_record_that_another_lets_die_is_said_again) {  // 6.6: another responder of this machine that stops
  board();
  network.say(Query(kResponse).address("board.local", {10, 0, 0, 1}, 0).text(), 1);
  network.run(1'500);
  CHECK_EQUAL(1, network.answers("A board.local 10.0.0.1 120 flush"));
  CHECK_EQUAL(0, network.probes(0));
}

TEST(Mdns, a_service_is_not_listed_twice) {  // 7.4
  board();
  network.say(ask("_services._dns-sd._udp.local", names::kTypePtr));
  network.say(Query(kResponse).pointer("_services._dns-sd._udp.local", "_http._tcp.local", 4500).text(), 98);
  network.run(1'000);
  CHECK_EQUAL(0, network.answers("PTR _services._dns-sd._udp.local"));
}

TEST(Mdns, the_reverse_of_an_address_is_left_to_another_responder_of_the_machine) {
  Network::Host& host = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  network.run(300);
  network.say(Query(kResponse).pointer("1.0.0.10.in-addr.arpa", "other.local", 120).text(), 1);
  network.run(5'000);
  CHECK_EQUAL(0, network.answers("PTR 1.0.0.10.in-addr.arpa"));
  CHECK_EQUAL(2, network.answers("A board.local"));
  STRCMP_EQUAL("board", host.names.back().c_str());
  network.say(ask("1.0.0.10.in-addr.arpa", names::kTypePtr));
  CHECK_EQUAL(0, network.answers("PTR 1.0.0.10.in-addr.arpa"));
}

TEST(Mdns, many_conflicts_slow_it_down) {  // 8.1: after 15 in ten seconds, five seconds each
  Network::Host& host = network.add("board", {interface(1, {ipv4({10, 0, 0, 1})})});
  for (int i = 0; i < 600; ++i) {
    network.run(100);
    char room[64];
    const std::string name = std::string(host.responder.published().label(room)) + ".local";
    network.say(Query(kResponse).address(name.c_str(), {10, 0, 0, 66}, 120).text());
  }
  char room[64];
  const std::string label(host.responder.published().label(room));
  CHECK_TRUE(host.responder.published().number() > 15);
  CHECK_TRUE(host.responder.published().number() < 45);
  CHECK_TRUE(host.names.empty());
}

TEST(Mdns, bytes_that_are_no_message_are_skipped) {
  Network::Host& host = board();
  const std::string query = Query().ask("board.local", names::kTypeA).pointer("_http._tcp.local", kInstance, 9).text();
  for (std::size_t size = 0; size < query.size(); ++size) {
    network.say(query.substr(0, size));
    network.run(1'000);
  }
  network.say(Query(0x2800).ask("board.local", names::kTypeA).text());  // an update
  network.run(1'000);
  CHECK_EQUAL(1u, host.names.size());
}

TEST(Mdns, a_bad_name_is_told) {
  STRCMP_EQUAL("a name is missing", mdns::bad_name(""));
  CHECK_TRUE(mdns::bad_name("board.local") != nullptr);
  CHECK_TRUE(mdns::bad_name("-board") != nullptr);
  CHECK_TRUE(mdns::bad_name("b\xc3\xbc") != nullptr);
  CHECK_TRUE(mdns::bad_name(std::string(64, 'a')) != nullptr);
  CHECK_TRUE(mdns::bad_name(std::string(63, 'a')) == nullptr);
  mdns::Published published;
  const mdns::Service none[] = {{.type = "_http._sctp", .port = 80}};
  CHECK_TRUE(published.set({.name = "board", .services = none}) != nullptr);
  const mdns::Service no_port[] = {{.type = "_http._tcp"}};
  CHECK_TRUE(published.set({.name = "board", .services = no_port}) != nullptr);
}

TEST(Mdns, a_long_name_makes_room_for_its_number) {
  mdns::Published published;
  CHECK_TRUE(published.set({.name = std::string(63, 'a')}) == nullptr);
  published.rename();
  char room[64];
  STRCMP_EQUAL((std::string(61, 'a') + "-2").c_str(), std::string(published.label(room)).c_str());
}

TEST_GROUP(MdnsServe) {
  void teardown() override { account::mdns.set_ceiling(SIZE_MAX); }  // namespace mdns_test
};

TEST(MdnsServe, a_bad_name_is_refused_before_anything_is_sent) {
  CHECK_TRUE(mdns::serve({.name = "board.local"}).error() == ErrorCode::invalid);
  CHECK_EQUAL(0u, account::mdns.used());
}

TEST(MdnsServe, its_memory_is_charged_and_refunded) {
  account::mdns.set_ceiling(mdns::kServeBytes / 2);
  CHECK_TRUE(mdns::serve({.name = "board"}, Deadline::now()).error() == ErrorCode::no_memory);
  account::mdns.set_ceiling(SIZE_MAX);
  // Before it has looked at any interface: nothing is sent on this machine's networks.
  const auto served = mdns::serve({.name = "board"}, Deadline::now());
  CHECK_TRUE(served.error() == ErrorCode::timed_out || served.error() == ErrorCode::system);
  CHECK_EQUAL(0u, account::mdns.used());
  CHECK_TRUE(account::mdns.high_water() > mdns::kServeBytes / 2);
}

#if !COIR_NO_ASYNC
TEST(MdnsServe, ends_when_the_deadline_of_a_scope_around_it_has_passed) {
  const auto ran = coir::run_until_idle({.workers = 1}, [] {
    // Before it has waited: nothing is sent.
    const auto served = coir::with_deadline(Deadline::at_ns(1), [] { return mdns::serve({.name = "board"}); });
    CHECK_TRUE(served.error() == ErrorCode::timed_out || served.error() == ErrorCode::system);
  });
  CHECK_TRUE(ran.has_value());
  CHECK_EQUAL(0u, account::mdns.used());
}
#endif

}  // namespace mdns_test
