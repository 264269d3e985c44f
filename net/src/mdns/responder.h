#pragma once

#include <coir/net/address.h>
#include <coir/net/mdns.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mdns/interfaces.h"
#include "mdns/published.h"

namespace coir::mdns {

inline constexpr std::uint16_t kPort = 5353;

// Sender is what a responder speaks through.
struct Sender {
  // send sends a message by an interface: to the group of the family, or to `to` if that is not null.
  Callable<void(std::span<const unsigned char> message, std::uint32_t interface, bool ipv6, const Address* to)> send;
  Callable<void(std::string_view label)> named;
};

// Arrival is a message that was received.
struct Arrival {
  std::span<const unsigned char> bytes;
  const Address& peer;
  std::uint32_t interface;
  bool group;  // it was sent to the group
};

// Responder is multicast DNS without sockets and without a clock: what arrives, the interfaces and the time are told to
// it, in milliseconds of a monotonic clock, and it sends by a Sender. One caller at a time; nothing here waits or
// allocates. A message is written into the room that each call lends.
//
//   responder.start(interfaces, now);
//   for (;;) { wait until responder.next() or a message; responder.receive(...) or responder.tick(...) }
//   responder.stop();
//
// The parts: responder.cpp (phases and time), query.cpp (what is asked), conflict.cpp (what others claim), outgoing_message.cpp
// (what is said).
class Responder {
 public:
  using Room = std::span<unsigned char>;
  static constexpr std::int64_t kNever = INT64_MAX;
  static constexpr std::size_t kMostBytes = 1440;  // of a message that is sent: fits a frame of Ethernet by IPv6

  Responder(const Sender& sender, std::uint32_t seed) noexcept : sender_(sender), random_(seed | 1) {}

  // publish takes what the program asks for, before all else. An error is a phrase that names the part at fault.
  const char* publish(const Options& options) noexcept { return published_.set(options); }

  // set_interfaces takes the interfaces as they are now: a new or a changed one is probed on and announced on.
  void set_interfaces(const Interfaces& now_there, std::int64_t now) noexcept;
  void receive(const Arrival& arrival, Room room, std::int64_t now) noexcept;
  // tick does what is due; next tells when something will be.
  void tick(Room room, std::int64_t now) noexcept;
  std::int64_t next() const noexcept;
  // stop says goodbye wherever the name was announced.
  void stop(Room room) noexcept;

  const Published& published() const noexcept { return published_; }

 private:
  // A path is one family of a link: where messages go and rates are held.
  struct Path {
    Wanted pending;
    std::int64_t due = kNever;
    bool urgent = false;              // somebody probes: 250 ms between two are enough (RFC 6762, 6)
    std::uint32_t sent[kKinds] = {};  // when each kind went to the group; 0: never
  };
  enum class Phase : std::uint8_t { off, probing, announcing, running };
  struct Link {
    Interface at;
    Phase phase = Phase::off;
    std::uint8_t step = 0;          // probes or announcements sent
    std::uint8_t reverse_lost = 0;  // one bit for each address whose reverse another responder of this machine has
    std::int64_t due = kNever;
    Path paths[2];  // IPv4, IPv6

    bool answers() const noexcept { return phase == Phase::announcing || phase == Phase::running; }
  };
  // Known is what a message lists as known.
  struct Known {
    Set records = 0;
    std::uint8_t addresses = 0, reverse = 0;  // one bit for each address of the link
  };
  // Deferred is a query whose known answers are still to come (RFC 6762, 7.2).
  struct Deferred {
    Address peer;
    std::uint32_t interface = 0;
    Wanted wanted;
    Known known;
    std::int64_t due = kNever;
  };
  // Claim is what a record says of ours.
  enum class Claim : std::uint8_t { none, same, other };
  struct Match {
    Claim claim = Claim::none;
    unsigned kind = 0;
    std::uint8_t addresses = 0;  // the address that it is of, as a bit; 0: of another link
  };

  // responder.cpp
  Link* find(std::uint32_t index) noexcept;
  static bool is_ours(const Link& link, std::size_t address) noexcept {
    return (link.reverse_lost >> address & 1) == 0;
  }
  void probe_from_start(Link& link, std::int64_t now, std::int64_t wait) noexcept;
  void conflict(Link& link, std::int64_t now) noexcept;
  void announce_name() noexcept;
  void flush(Link& link, bool ipv6, Room room, std::int64_t now) noexcept;
  std::uint32_t random(std::uint32_t from, std::uint32_t to) noexcept;

  static std::uint32_t stamp(std::int64_t now) noexcept { return now == 0 ? 1 : static_cast<std::uint32_t>(now); }

  // query.cpp
  void answer_query(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header,
                    Link& link, Room room, std::int64_t now) noexcept;
  Wanted match(const names::MessageReader& message, const names::Question& question, const Link& link) const noexcept;
  Wanted match_reverse(const names::MessageReader& message, const names::Question& question,
                       const Link& link) const noexcept;
  void read_known(names::MessageReader& message, const names::MessageHeader& header, const Link& link,
                  Known& known) const noexcept;
  bool continue_deferred(const Arrival& arrival, const names::MessageHeader& header, names::MessageReader& message,
                         const Link& link, std::int64_t now) noexcept;
  bool defer(const Arrival& arrival, const Wanted& wanted, std::int64_t now) noexcept;
  bool may_send_unicast(std::int64_t now) noexcept;
  void to_group(const Path& path, Wanted& unicast, Wanted& multicast, std::int64_t now) const noexcept;
  static void strip(Wanted& wanted, const Known& known, const Link& link) noexcept;
  static void schedule(Path& path, const Wanted& wanted, std::int64_t due) noexcept;

  // conflict.cpp
  Match compare(const names::MessageReader& message, const names::Record& record, const Link& link) const noexcept;
  Match compare_address(const names::MessageReader& message, const names::Record& record,
                        const Link& link) const noexcept;
  Match compare_pointer(const names::MessageReader& message, const names::Record& record,
                        const Link& link) const noexcept;
  void take_response(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header,
                     Link& link, std::int64_t now) noexcept;
  void take_probe(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header, Link& link,
                  std::int64_t now) noexcept;
  bool is_own(std::span<const unsigned char> message) const noexcept;
  void remember(std::span<const unsigned char> message) noexcept;

  // outgoing_message.cpp
  enum class As : std::uint8_t { answer, goodbye, probe, legacy };
  void send(std::span<const unsigned char> message, const Link& link, bool ipv6, const Address* to) noexcept;
  void send_probe(const Link& link, Room room) noexcept;
  void send_records(const Link& link, bool ipv6, const Wanted& answers, const Wanted& more, As as, Room room) noexcept;
  void send_unicast(const Arrival& arrival, const Link& link, const Wanted& answers, bool legacy, Room room) noexcept;
  bool put(names::RecordWriter& out, names::RecordWriter::Section section, const Link& link, unsigned kind,
           std::size_t part, As as) const noexcept;
  bool put_service(names::RecordWriter& out, names::RecordWriter::Section section, unsigned kind, As as) const noexcept;
  bool put_all(names::RecordWriter& out, names::RecordWriter::Section section, const Link& link, const Wanted& wanted,
               As as) const noexcept;
  Wanted all(const Link& link) const noexcept;
  Wanted additional(const Link& link, const Wanted& answers) const noexcept;

  static constexpr std::size_t kRemembered = 32, kMostDeferred = 4;

  Published published_;
  Sender sender_;
  std::uint32_t random_;
  Interfaces interfaces_;
  Link links_[kMostInterfaces];
  Deferred deferred_[kMostDeferred];
  std::int64_t unicast_due_ = 0;  // when all unicast answers so far would have gone, had they kept their distance
  std::uint64_t own_[kRemembered] =
      {};  // of the latest messages to the group, by which they are known when they come back
  std::uint8_t own_next_ = 0;
  std::uint8_t conflicts_ = 0;  // since conflicts_since_
  std::int64_t conflicts_since_ = 0;
  std::uint16_t told_ = 0;  // the number of the name that the program was told
};

}  // namespace coir::mdns
