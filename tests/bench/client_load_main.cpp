// Thousands of keep-alive clients of a server with little memory, commanded line by line.
//
//   client_load ADDRESS PORT TARGET MOST
//
// Reads commands from standard input and answers each with one line, the counts of bench::Counts in their order:
//
//   hold N           opens connections, 100 at a time, until N are open or the server takes no more
//   flood N SECONDS  N connections at once; waits for their answers for so long at most
//   again            asks once more on each open connection
//   look             nothing but the counts
//   close            ends all connections; the answer is what there was until then
//
// MOST clients are spread over as many processes as the limit of open files demands. Ends at end of input.

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client_load.h"

namespace {

using bench::ClientLoad;
using bench::Counts;

constexpr long kWindow = 100;
constexpr long kMostParts = 16;

// Command is one command to a process of the load, with its share worked out.
struct Command {
  char verb[8];
  long count;
  long seconds;
};

// Part is one process of the load.
struct Part {
  int commands;
  int answers;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "client_load: ");
  std::perror(what);
  std::exit(1);
}

void obey(ClientLoad& load, const Command& command, Counts& answer) {
  const auto is = [&](const char* verb) { return std::strcmp(command.verb, verb) == 0; };
  if (is("hold")) load.hold(command.count, kWindow);
  if (is("flood")) load.flood(command.count, command.seconds);
  if (is("again")) load.again(kWindow);
  if (is("look")) load.look();
  answer = load.counts();
  if (is("close")) load.close();
}

// serve is the life of one process of the load.
[[noreturn]] void serve(int commands, int answers, ClientLoad& load) {
  Command command;
  while (read(commands, &command, sizeof command) == sizeof command) {
    Counts answer;
    obey(load, command, answer);
    if (write(answers, &answer, sizeof answer) != sizeof answer) break;
  }
  std::exit(0);
}

// sum adds one answer to another, count by count.
void sum(Counts& into, const Counts& part) {
  static_assert(sizeof(Counts) == Counts::kCounts * sizeof(long));
  long ours[Counts::kCounts];
  long theirs[Counts::kCounts];
  std::memcpy(ours, &into, sizeof ours);
  std::memcpy(theirs, &part, sizeof theirs);
  for (std::size_t i = 0; i < Counts::kCounts; ++i) ours[i] += theirs[i];
  std::memcpy(&into, ours, sizeof ours);
}

// share is what part `index` of `parts` gets of `count`. Held connections are opened one burst after the other: the
// first parts are filled before the next ones get any.
long share(const Command& command, long index, long parts, long each) {
  if (std::strcmp(command.verb, "hold") != 0) return (command.count + index) / parts;
  const long rest = command.count - index * each;
  return rest < 0 ? 0 : rest < each ? rest : each;
}

// tell has the parts obey at once, or one after the other where they hold connections, and sums up their answers. Once
// a part could not open all of its share, the next ones are only looked at.
Counts tell(Part* parts, long count, long each, Command command) {
  Counts whole;
  const bool in_turn = std::strcmp(command.verb, "hold") == 0;
  const auto ask = [&](long i) {
    Command own = command;
    own.count = share(command, i, count, each);
    if (write(parts[i].commands, &own, sizeof own) != sizeof own) fail("a part has ended");
    return own.count;
  };
  const auto hear = [&](long i) {
    Counts part;
    if (read(parts[i].answers, &part, sizeof part) != sizeof part) fail("a part has ended");
    sum(whole, part);
    return part.open;
  };
  for (long i = 0; i < count; ++i) {
    const long wanted = ask(i);
    if (in_turn && hear(i) < wanted) std::strcpy(command.verb, "look");
  }
  for (long i = 0; i < count && !in_turn; ++i) hear(i);
  return whole;
}

// most_files raises the limit of open files as far as it goes and returns it.
long most_files() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur > 1'000'000 ? 1'000'000 : static_cast<long>(files.rlim_cur);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: client_load ADDRESS PORT TARGET MOST\n", stderr);
    return 2;
  }
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) fail(argv[1]);
  const long most = std::atol(argv[4]);
  const long room = most_files() - 64;
  const long count = room > 0 ? (most + room - 1) / room : kMostParts + 1;
  if (most < 1 || count > kMostParts) {
    std::fputs("client_load: not that many clients; raise the limit of open files\n", stderr);
    return 1;
  }
  const long each = (most + count - 1) / count;

  Part parts[kMostParts];
  for (long i = 0; i < count; ++i) {
    int commands[2];
    int answers[2];
    if (pipe(commands) != 0 || pipe(answers) != 0) fail("pipe");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(commands[1]);
      close(answers[0]);
      close(STDIN_FILENO);
      ClientLoad load(server, argv[3], static_cast<std::size_t>(each));
      serve(commands[0], answers[1], load);
    }
    close(commands[0]);
    close(answers[1]);
    parts[i] = {commands[1], answers[0]};
  }

  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    Command command{};
    if (std::sscanf(line, "%7s %ld %ld", command.verb, &command.count, &command.seconds) < 1) continue;
    const Counts counts = tell(parts, count, each, command);
    std::printf("%ld %ld %ld %ld %ld %ld %ld %ld %ld\n", counts.open, counts.again, counts.refused, counts.closed,
                counts.lost, counts.declined, counts.reset, counts.unanswered, counts.unconnected);
  }
}
