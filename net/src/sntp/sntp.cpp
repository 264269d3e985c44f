#include <coir/net/sntp.h>

#include <coir/net/address.h>
#include <coir/net/datagram.h>
#include <errno.h>
#include <time.h>

#include <algorithm>

#include "base/randomness.h"
#include "sntp/sntp_message.h"

namespace coir {
namespace {

using sntp::Verdict;

constexpr std::int64_t kBillion = 1'000'000'000;

std::int64_t clock_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kBillion + now.tv_nsec;
}

// sample_of compares the server's times with this machine's, of which only the first is read from the clock that may be
// set meanwhile.
TimeSample sample_of(const sntp::Answer& answer, std::int64_t asked_ns, std::int64_t elapsed_ns) noexcept {
  const std::int64_t answered_ns = asked_ns + elapsed_ns, there_ns = answer.sent_ns - answer.received_ns;
  TimeSample sample;
  // Halved first: the sum of two differences of decades would not fit.
  sample.offset = std::chrono::nanoseconds((answer.received_ns - asked_ns) / 2 + (answer.sent_ns - answered_ns) / 2);
  // A coarse clock of the server's makes it less than nothing on a short way.
  sample.delay = std::chrono::nanoseconds(std::max<std::int64_t>(elapsed_ns - there_ns, 0));
  sample.stratum = answer.stratum;
  return sample;
}

// ask_address asks one once. Errors: alert, temporary, timed_out (by `until`) and those of the socket.
std::expected<TimeSample, Error> ask_address(const Address& server, Deadline until) noexcept {
  auto socket = DatagramSocket::connect(server);
  if (!socket) return std::unexpected(socket.error());
  std::uint64_t nonce;
  fill_with_randomness({reinterpret_cast<char*>(&nonce), sizeof nonce});
  char message[sntp::kMessageBytes];
  sntp::write_request(message, nonce);
  // In this order a delay between the two makes the way longer, and so stays within what it promises.
  const std::int64_t begun_ns = monotonic_ns(), asked_ns = clock_ns();
  if (auto sent = socket->send({message, sizeof message}, until); !sent) return std::unexpected(sent.error());
  for (;;) {
    const auto got = socket->receive_from(message, until);
    const std::int64_t elapsed_ns = monotonic_ns() - begun_ns;
    if (!got) return std::unexpected(got.error());
    const sntp::Answer answer = sntp::read_answer(got->bytes, nonce);
    if (answer.verdict == Verdict::not_ours) continue;
    if (answer.verdict == Verdict::kiss) return std::unexpected(Error{ErrorCode::alert, answer.kiss});
    if (answer.verdict == Verdict::useless) return std::unexpected(Error{ErrorCode::temporary});
    TimeSample sample = sample_of(answer, asked_ns, elapsed_ns);
    sample.server = server;
    return sample;
  }
}

}  // namespace

std::expected<TimeSample, Error> query_time(std::string_view server, const TimeQuery& how, Deadline deadline) noexcept {
  const auto found = resolve(server, how.port, deadline);
  if (!found) return std::unexpected(found.error());
  Error failure{ErrorCode::temporary};
  bool refused[Addresses::kMost] = {};
  for (unsigned round = 0; round < how.rounds; ++round) {
    for (std::size_t i = 0; i < found->size(); ++i) {
      // A server that does not want to be asked is not asked again.
      if (refused[i]) continue;
      const Deadline until = std::min(deadline, Deadline::after(how.patience));
      auto sample = ask_address((*found)[i], until);
      if (sample) return sample;
      Error error = sample.error();
      // Its own patience is over, and nothing else.
      const bool silent = error.is_late() && !deadline.passed();
      if (error == ErrorCode::cancelled || (error == ErrorCode::timed_out && !silent)) return sample;
      refused[i] = error == ErrorCode::alert;
      if (silent) error = {ErrorCode::temporary};
      // A refusal tells more than an address that cannot be asked, and that more than silence.
      if (refused[i] || failure == ErrorCode::temporary) failure = error;
    }
  }
  return std::unexpected(failure);
}

std::expected<void, Error> set_clock(std::chrono::nanoseconds by) noexcept {
  std::int64_t wanted;
  if (__builtin_add_overflow(clock_ns(), by.count(), &wanted) || wanted < 0)
    return std::unexpected(Error{ErrorCode::invalid});
  timespec at = {};
  at.tv_sec = static_cast<time_t>(wanted / kBillion);
  at.tv_nsec = static_cast<long>(wanted % kBillion);
  if (::clock_settime(CLOCK_REALTIME, &at) != 0) return std::unexpected(Error::from_errno(errno));
  return {};
}

}  // namespace coir
