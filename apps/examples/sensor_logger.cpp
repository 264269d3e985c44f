// A logger for sensors: readings arrive as lines "NAME VALUE" on a device, a pipe or standard input, and go to a file with
// the time they came. Reading and writing are two fibers with a bounded channel between them, for flash stalls now and
// then. The policy decides about a reading that finds the channel full:
//
//   wait          the sensors are not read meanwhile: what they send is kept by the kernel, or blocks them
//   drop_newest   the reading is left out
//   drop_oldest   it takes the place of the oldest
//
//   sensor_logger INPUT OUTPUT CAPACITY POLICY      INPUT "-" is standard input
//
// At the end of the input, and at SIGTERM, what the channel holds is written, and a line tells what became of all.

#include <coir/cancel_scope.h>
#include <coir/channel.h>
#include <coir/descriptor_stream.h>
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/print.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <coir/stream_lines.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <charconv>

using coir::Deadline;
using coir::ErrorCode;
using Outcome = std::expected<void, coir::Error>;

namespace {

struct Reading {
  std::int64_t seconds = 0;
  std::int64_t value = 0;
  char name[24] = {};
};

enum class Policy { wait, drop_newest, drop_oldest };

struct Counts {
  std::uint64_t read = 0, malformed = 0, dropped = 0, written = 0;
};

bool parse(std::string_view line, Reading& reading) {
  const std::size_t space = line.find(' ');
  if (space == 0 || space == line.npos || space >= sizeof reading.name) return false;
  memcpy(reading.name, line.data(), space);
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + space + 1, end, reading.value);
  reading.seconds = time(nullptr);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// keep puts a reading into the channel as the policy says.
Outcome keep(coir::Channel<Reading>& channel, Reading& reading, Policy policy, Counts& counts) {
  if (policy == Policy::wait) return channel.send(reading);
  for (;;) {
    const Outcome sent = channel.send(reading, Deadline::now());
    if (sent || sent.error() != ErrorCode::timed_out) return sent;
    if (policy == Policy::drop_newest) return ++counts.dropped, Outcome();
    if (channel.receive(Deadline::now())) ++counts.dropped;
  }
}

// read_all takes in readings until the input ends or the caller is cancelled; then nothing more comes.
void read_all(coir::DescriptorStream& input, coir::Channel<Reading>& channel, Policy policy, Counts& counts) {
  char buffer[80];
  coir::StreamLines lines(input, buffer);
  for (;;) {
    const auto line = lines.next();
    if (!line && line.error() != ErrorCode::limit) break;
    Reading reading;
    if (!line || !parse(*line, reading)) {
      ++counts.malformed;
      continue;
    }
    ++counts.read;
    if (!keep(channel, reading, policy, counts)) break;
  }
  channel.close();
}

// write_all writes what the channel holds, as much as there is with each call, until it is closed and drained.
Outcome write_all(coir::DescriptorStream& output, coir::Channel<Reading>& channel, Counts& counts) {
  Reading readings[16];
  char text[sizeof readings / sizeof *readings * 72];
  for (;;) {
    const auto some = channel.receive_up_to(readings);
    if (!some) return some.error() == ErrorCode::closed ? Outcome() : std::unexpected(some.error());
    coir::Formatter out(text);
    for (const Reading& each : std::span(readings, *some)) out.add(each.seconds, " ", each.name, " ", each.value, "\n");
    if (auto written = output.write(out.text()); !written) return written;
    counts.written += *some;
  }
}

Outcome log_sensors(const char* from, const char* to, std::size_t capacity, Policy policy) {
  auto input = strcmp(from, "-") == 0 ? coir::DescriptorStream::share(STDIN_FILENO)
                                      : coir::DescriptorStream::open(from, {.read = true});
  if (!input) return std::unexpected(input.error());
  auto output = coir::DescriptorStream::open(to, {.create = true, .append = true});
  if (!output) return std::unexpected(output.error());

  if (auto caught = coir::catch_signals({SIGTERM, SIGINT}); !caught) return caught;
  coir::Channel<Reading> channel({.capacity = capacity});
  Counts counts;
  auto writer =
      coir::spawn({.name = "writer", .stack = 16 * 1024}, [&] { return write_all(*output, channel, counts); });
  coir::Fiber reader = coir::spawn({.name = "reader"}, [&] { read_all(*input, channel, policy, counts); });
  coir::Fiber signals = coir::spawn({.name = "signals"}, [&] {
    if (coir::wait_signal({SIGTERM, SIGINT})) static_cast<void>(reader.cancel());
  });
  coir::print("logging\n");
  const Outcome written = writer.await();
  static_cast<void>(reader.cancel());  // if the output has failed
  static_cast<void>(reader.join());
  static_cast<void>(signals.cancel());
  static_cast<void>(signals.join());
  coir::print(counts.read, " read, ", counts.written, " written, ", counts.dropped, " dropped, ", counts.malformed,
              " malformed\n");
  return written;
}

}  // namespace

int main(int count, char** words) {
  constexpr const char* kPolicies[] = {"wait", "drop_newest", "drop_oldest"};
  for (int policy = 0; count == 5 && policy < 3; ++policy) {
    if (strcmp(words[4], kPolicies[policy]) != 0 || atoi(words[3]) < 1) continue;
    signal(SIGPIPE, SIG_IGN);
    return coir::run([&] {
      return log_sensors(words[1], words[2], static_cast<std::size_t>(atoi(words[3])), static_cast<Policy>(policy));
    });
  }
  coir::print("usage: sensor_logger INPUT OUTPUT CAPACITY wait|drop_newest|drop_oldest\n");
  return count == 1 ? 0 : 2;
}
