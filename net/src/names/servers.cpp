#include "names/servers.h"

#include <coir/tcp.h>
#include <coir/wait.h>
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/randomness.h"
#include "names/name_cache.h"
#include "socket/kernel.h"

namespace coir::names {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 53;
constexpr std::uint16_t kTypes[] = {kTypeA, kTypeAaaa};
constexpr std::size_t kSizes[] = {4, 16};
constexpr unsigned kServerFailed = 2, kNoSuchName = 3;
constexpr int kLongestChain = 8;                // of names that stand for others
constexpr std::uint32_t kLongestAbsence = 300;  // for "there is no such name" (RFC 2308 allows an hour or more)
// How long one server is alone, and how long the other family's answer is waited for once there is an address.
constexpr std::chrono::nanoseconds kHeadStart = 1s;
constexpr std::size_t kLongestQuestion = MessageHeader::kBytes + Name::kMost + 4;

// asking_error tells a server that cannot be reached from a machine that cannot ask.
Error asking_error(int number) noexcept {
  switch (number) {
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return {ErrorCode::temporary};
    default:
      return Error::from_errno(number);
  }
}

// Asking is one name's two questions, for IPv4 and IPv6 addresses, and the servers that were asked. Each question is judged
// for itself: a server that fails to answer one may still answer the other, and a name without addresses is believed once
// both are answered.
class Asking {
 public:
  Asking(const Name& name, const NameServers& servers, AskingRoom& room, Addresses& found) noexcept
      : name_(name), servers_(servers), room_(room), found_(found) {
    fill_with_randomness({reinterpret_cast<char*>(ids_), sizeof ids_});
    ids_[1] = static_cast<std::uint16_t>(ids_[1] == ids_[0] ? ~ids_[1] : ids_[1]);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() {
    for (std::size_t i = 0; i < count(); ++i) close(i);
  }

  std::expected<std::uint32_t, Error> run(Deadline deadline) noexcept {
    deadline_ = std::min(deadline, Deadline::after(std::chrono::seconds(servers_.timeout_s)));
    while ((over_[0] & over_[1]) != all()) {
      if (next_at_.passed()) ask_next();
      if (under_way() == 0) {
        // The remaining servers are asked at once.
        if (exhausted_) break;
        continue;
      }
      if (auto ready = wait_several({awaited_, count()}, std::min(deadline_, next_at_)); !ready) {
        const Error error = ready.error();
        if (!error.is_late()) return std::unexpected(error);
        if (!deadline_.passed() && !deadline.passed()) continue;
        if (found_.size() != 0) return seconds();
        return std::unexpected(deadline.passed() ? error : Error{ErrorCode::temporary});
      }
      for (std::size_t i = 0; i < count(); ++i) take(i);
    }
    if (found_.size() != 0 || (done_[0] && done_[1])) return seconds();
    return std::unexpected(failure_);
  }

 private:
  std::size_t count() const noexcept { return servers_.servers.size(); }

  // Each question has one bit for each server that says nothing more to it: it has failed to, or the question is answered.
  unsigned all() const noexcept { return (1u << count()) - 1; }
  bool is_over(std::size_t server) const noexcept { return ((over_[0] & over_[1]) >> server & 1) != 0; }

  std::size_t under_way() const noexcept {
    std::size_t open = 0;
    for (const Awaited& each : awaited_) open += each.fd >= 0;
    return open;
  }

  // seconds is how long the answer holds.
  std::expected<std::uint32_t, Error> seconds() const noexcept { return found_.size() != 0 ? lasts_ : absent_; }

  void close(std::size_t server) noexcept {
    if (awaited_[server].fd >= 0) close_fd(awaited_[server].fd);
    awaited_[server].fd = -1;
  }

  // fail notes that a server cannot be asked; refuse, that it does not answer one of the questions.
  void fail(std::size_t server, Error why) noexcept {
    refuse(server, 0, why);
    refuse(server, 1, why);
  }
  void refuse(std::size_t server, std::size_t which, Error why) noexcept {
    if (done_[which]) return;
    failure_ = why;
    next_at_ = Deadline::now();
    end(which, 1u << server);
  }
  void end(std::size_t which, unsigned servers) noexcept {
    over_[which] |= servers;
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_over(i)) close(i);
    }
  }

  // ask_next asks the next server that has not failed, again those that were asked long ago.
  void ask_next() noexcept {
    next_at_ = Deadline::never();
    for (std::size_t tried = 0; tried < count() && sent_ < count() * servers_.attempts; ++tried) {
      const std::size_t server = turn_++ % count();
      if (is_over(server)) continue;
      ++sent_;
      if (const int failed = ask(server); failed != 0) {
        fail(server, asking_error(failed));
        continue;
      }
      const auto again = std::chrono::nanoseconds(std::chrono::seconds(servers_.timeout_s)) / servers_.attempts;
      next_at_ = Deadline::after(turn_ < count() ? std::min(again, kHeadStart) : again);
      return;
    }
    exhausted_ = under_way() == 0;
  }

  // ask sends a server what is still unknown. Returns 0 or errno.
  int ask(std::size_t server) noexcept {
    int& fd = awaited_[server].fd;
    if (fd < 0) {
      const Address to = servers_.servers[server].with_port(kPort);
      fd = kernel::datagram_socket(to.get()->sa_family);
      if (fd < 0) return -fd;
      // The kernel takes a port that nobody can foresee, and only what comes from there.
      if (const int failed = kernel::connect(fd, to.get(), to.length()); failed < 0) return -failed;
    }
    for (std::size_t which = 0; which < 2; ++which) {
      unsigned char packet[kLongestQuestion];
      if ((over_[which] >> server & 1) != 0) continue;
      const auto message = question(which, packet);
      if (const ssize_t sent = kernel::send(fd, message.data(), message.size(), 0); sent < 0 && sent != -EAGAIN) {
        return static_cast<int>(-sent);
      }
    }
    return 0;
  }

  std::span<const unsigned char> question(std::size_t which, std::span<unsigned char> into) const noexcept {
    MessageWriter writer(into);
    writer.write({.id = ids_[which], .flags = MessageHeader::kRecursionDesired, .questions = 1});
    writer.write(name_, kTypes[which], kClassIn);
    return writer.message();
  }

  // take reads all that a server has sent.
  void take(std::size_t server) noexcept {
    while (awaited_[server].fd >= 0) {
      const ssize_t got = kernel::receive(awaited_[server].fd, room_.packet, sizeof room_.packet);
      if (got == -EAGAIN) return;
      if (got == -EINTR) continue;
      if (got < 0) return fail(server, asking_error(static_cast<int>(-got)));  // such as an ICMP message's ECONNREFUSED
      judge(server, {room_.packet, static_cast<std::size_t>(got)}, true);
    }
  }

  // judge keeps what answers one of the questions, and drops everything else.
  void judge(std::size_t server, std::span<const unsigned char> message, bool by_udp) noexcept {
    MessageReader reader(message);
    MessageHeader header;
    if (!reader.read(header) || (header.flags & MessageHeader::kResponse) == 0 ||
        (header.flags & MessageHeader::kOpcode) != 0)
      return;
    const unsigned code = header.flags & MessageHeader::kCode;
    const std::size_t which = header.id == ids_[0] ? 0 : 1;
    if (header.id != ids_[which] || done_[which]) return;
    Question asked;
    if (header.questions == 1) {
      if (!reader.read(asked) || asked.type != kTypes[which] || asked.klass != kClassIn ||
          !reader.name_is(asked.name_at, name_))
        return;
    } else if (code == 0 || header.questions != 0) {
      return;
    }
    if (code != 0 && code != kNoSuchName) {
      return refuse(server, which,
                    code == kServerFailed ? Error{ErrorCode::temporary} : Error{ErrorCode::system, EPROTO});
    }
    if (by_udp && (header.flags & MessageHeader::kTruncated) != 0) return ask_by_tcp(server, which);
    done_[which] = true;
    keep(reader, header, which);
    end(which, all());
    if (found_.size() != 0) deadline_ = std::min(deadline_, Deadline::after(kHeadStart));
  }

  // keep adds the addresses that the records behind the question hold, led by their names.
  void keep(const MessageReader& behind_question, const MessageHeader& header, std::size_t which) noexcept {
    std::uint32_t lasts = UINT32_MAX;
    bool added = false, led = true;
    bool is_name = true;  // the target is the name that was asked for
    MessageReader reader = behind_question;
    for (int hops = 0; led && !added && hops < kLongestChain; ++hops) {
      led = false;
      std::size_t leads_to = 0;
      reader = behind_question;
      Record record;
      for (unsigned left = header.answers; left != 0 && reader.read(record); --left) {
        if (record.klass != kClassIn || !reader.name_is(record.name_at, is_name ? name_ : room_.target)) continue;
        const bool address = record.type == kTypes[which] && record.data_size == kSizes[which];
        if (!address && record.type != kTypeCname) continue;
        lasts = std::min(lasts, record.ttl);
        if (address) {
          added = true;
          PackedAddresses::add(found_, reader.data(record));
        } else if (!led) {
          led = true;
          leads_to = record.data_at;
        }
      }
      led = led && !added && reader.copy_name(leads_to, room_.target);
      is_name = false;
    }
    std::uint32_t& least = added ? lasts_ : absent_;
    least = std::min(least, added ? lasts : absence(behind_question, header));
  }

  // absence is for how long there is no such record: by the zone's own record (RFC 2308, 5); 0 where it is missing.
  static std::uint32_t absence(MessageReader reader, const MessageHeader& header) noexcept {
    Record record;
    for (unsigned left = header.answers; left != 0; --left) {
      if (!reader.read(record)) return 0;
    }
    for (unsigned left = header.authorities; left != 0 && reader.read(record); --left) {
      if (record.type != kTypeSoa || record.data_size < 4) continue;
      const auto last = reader.data(record).last(4);
      const auto minimum = static_cast<std::uint32_t>(last[0]) << 24 | static_cast<std::uint32_t>(last[1]) << 16 |
                           static_cast<std::uint32_t>(last[2]) << 8 | last[3];
      return std::min({record.ttl, minimum, kLongestAbsence});
    }
    return 0;
  }

  // ask_by_tcp asks again for a longer answer and reads its beginning. The last server left has all the time, others half.
  void ask_by_tcp(std::size_t server, std::size_t which) noexcept {
    char packet[2 + kLongestQuestion];
    const auto message = question(which, {reinterpret_cast<unsigned char*>(packet) + 2, kLongestQuestion});
    packet[0] = static_cast<char>(message.size() >> 8);
    packet[1] = static_cast<char>(message.size());
    const bool last = (over_[which] | 1u << server) == all();
    const Deadline deadline = last ? deadline_ : Deadline::at_ns(deadline_.ns() / 2 + monotonic_ns() / 2);
    auto stream = TcpStream::connect(servers_.servers[server].with_port(kPort), deadline);
    const Error failure{ErrorCode::temporary};
    if (!stream || !stream->write({packet, 2 + message.size()}, deadline)) return refuse(server, which, failure);
    std::size_t there = 0, most = 2;
    char* const into = reinterpret_cast<char*>(room_.packet);
    while (there < most) {
      const auto got = stream->read({into + there, most - there}, deadline);
      if (!got) return refuse(server, which, failure);
      there += *got;
      if (there == 2) most = std::min<std::size_t>(2u + (room_.packet[0] << 8 | room_.packet[1]), sizeof room_.packet);
    }
    judge(server, {room_.packet + 2, most - 2}, false);
    // An answer to something else is none.
    if (!done_[which]) refuse(server, which, failure);
  }

  const Name& name_;
  const NameServers& servers_;
  AskingRoom& room_;
  Addresses& found_;
  std::uint16_t ids_[2];
  bool done_[2] = {};
  unsigned over_[2] = {};
  Awaited awaited_[NameServers::kMost];
  std::size_t turn_ = 0, sent_ = 0;
  bool exhausted_ = false;  // nobody is left who could be asked
  Deadline next_at_ = Deadline::now(), deadline_;
  std::uint32_t lasts_ = UINT32_MAX, absent_ = kLongestAbsence;
  Error failure_{ErrorCode::temporary};
};

}  // namespace

std::expected<std::uint32_t, Error> ask_servers(const Name& name, const NameServers& servers, AskingRoom& room,
                                                Addresses& found, Deadline deadline) noexcept {
  return Asking(name, servers, room, found).run(deadline);
}

}  // namespace coir::names
