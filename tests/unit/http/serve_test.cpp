// serve: the whole work of a server's main, in each of its modes.

#include <CppUTest/TestHarness.h>
#include <coir/http.h>
#include <coir/program.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/scale.h"

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

namespace serve_test {

namespace {

using namespace coir::http;
using namespace std::chrono_literals;
using coir::test::ChildEnd;
using coir::test::in_child;

// ask sends a request to a Unix socket, once somebody listens there, and returns whether the answer ends with `wanted`.
bool ask(const char* path, std::string_view target, std::string_view wanted) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  strcpy(to.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  while (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) usleep(1000);
  char text[512];
  const auto request = coir::format(text, "GET ", target, " HTTP/1.0\r\nHost: localhost\r\n\r\n");
  if (::write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) return false;
  std::size_t size = 0;
  for (ssize_t got; size < sizeof text && (got = ::read(fd, text + size, sizeof text - size)) > 0;) {
    size += static_cast<std::size_t>(got);
  }
  close(fd);
  return std::string_view(text, size).ends_with(wanted);
}

// beside runs `client` in a process of its own, which then has the server stop, and returns the server's status; 9 if
// the client was not content.
template <class Client, class Server>
int beside(Client client, Server server) {
  const pid_t child = fork();
  if (child == 0) {
    if (!client()) _exit(1);
    // The thread sanitizer may lose a signal that meets a fiber.
    for (;; sleep(5)) kill(getppid(), SIGTERM);
  }
  const int status = server();
  kill(child, SIGKILL);
  int ended = 0;
  if (waitpid(child, &ended, 0) != child || !WIFSIGNALED(ended)) return 9;
  return status;
}

struct Socket {
  coir::test::Folder folder;
  char path[128];
  char address[140];

  Socket() {
    coir::format(path, folder.path(), "/s", '\0');
    coir::format(address, "unix:", path, '\0');
  }
};

void hello(Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello");
}

ChildEnd serve_in(Mode mode) {
  const Socket socket;
  return in_child([&] {
    return beside([&] { return ask(socket.path, "/double/21", "42") && ask(socket.path, "/", "hello"); },
                  [&] {
                    int asked = 0;
                    auto app = routes(get<"/">(hello), get<"/double/{number}">([&](Exchange& exchange, int number) {
                                        ++asked;
                                        char text[16];
                                        exchange.respond(200, "text/plain", coir::format(text, 2 * number));
                                      }));
                    const int status = serve({.listen = socket.address, .memory = 64 << 20, .mode = mode}, app);
                    return asked == 1 ? status : 8;
                  });
  });
}

}  // namespace

TEST_GROUP(Serve) {};

TEST(Serve, answers_by_a_table_until_sigterm_on_one_thread) {
  const auto end = serve_in(Mode::serial);
  CHECK_EQUAL(0, end.status);
  CHECK(end.wrote("server: listening on unix:"));
}

#if !COIR_NO_ASYNC
TEST(Serve, answers_by_a_table_until_sigterm_on_fibers) {
  CHECK_EQUAL(0, serve_in(Mode::fibers).status);
}

TEST(Serve, has_jobs_beside_the_server_which_end_with_it) {
  const Socket socket;
  const auto end = in_child([&] {
    int started = 0, ended = 0;
    const int status = beside([&] { return ask(socket.path, "/", "hello"); },
                              [&] {
                                return serve({.name = "jobs",
                                              .listen = socket.address,
                                              .jobs =
                                                  [&](coir::Nursery& jobs) {
                                                    ++started;
                                                    jobs.start([&] {
                                                      static_cast<void>(coir::sleep(std::chrono::hours(1)));
                                                      ++ended;
                                                    });
                                                  }},
                                             hello);
                              });
    return status != 0 ? status : started == 1 && ended == 1 ? 0 : 7;
  });
  CHECK_EQUAL(0, end.status);
}

#if !COIR_SINGLE_WORKER
TEST(Serve, answers_by_a_table_until_sigterm_on_threads) {
  CHECK_EQUAL(0, serve_in(Mode::threads).status);
}
#endif
#endif

TEST(Serve, each_fault_is_one_line_that_names_it) {
  auto end = in_child([] { return serve({.name = "mine", .listen = "localhost:80"}, hello); });
  CHECK_EQUAL(2, end.status);
  CHECK_EQUAL(1, end.lines());
  CHECK(end.wrote("mine: listen 'localhost:80': "));
  end = in_child([] { return serve({.listen = ""}, hello); });
  CHECK_EQUAL(2, end.status);
  CHECK(end.wrote("server: listen: no address\n"));
  end = in_child([] { return serve({.listen = "127.0.0.1:0", .memory = 1024}, hello); });
  CHECK_EQUAL(2, end.status);
  CHECK(end.wrote("server: memory: 1024 bytes are too few, "));
  const Socket socket;
  char inside[160];
  coir::format(inside, "unix:", socket.folder.path(), "/none/s", '\0');
  end = in_child([&] { return serve({.listen = inside}, hello); });
  CHECK_EQUAL(1, end.status);
  CHECK(end.wrote("server: cannot listen on unix:"));
  char folder[160];
  coir::format(folder, socket.folder.path(), "/none", '\0');
  end = in_child([&] {
    auto app = routes(any<"/{path...}">(FileTree{folder}));
    return serve({.listen = socket.address}, app);
  });
  CHECK_EQUAL(2, end.status);
  CHECK(end.wrote("server: files of '") && end.wrote("/none': "));
}

TEST(Serve, names_a_folder_whose_path_is_long) {
  coir::test::Folder folder;
  const char* const link = folder.at("loop");
  CHECK_EQUAL(0, symlink("loop", link));
  char root[300];
  memset(root, '/', 100);
  strcpy(root + 100, link);
  const FileTree files(root);
  CHECK(files.problem().starts_with("files of '//") && files.problem().size() < 120);
}

TEST(Serve, plans_no_more_than_the_memory_holds) {
  ServeOptions options{.memory = 4 << 20};
  options.server.max_active = 4096;
  MemoryPlan plan;
  if (!plan_memory(options, plan)) {
    CHECK(plan.ceiling < plan.least);
    return;
  }
  CHECK(plan.process + options.server.max_connections * plan.connection <= plan.ceiling);
  CHECK(plan.process + options.server.max_active * plan.request <= plan.ceiling);
  CHECK(options.server.max_connections > 0 && options.server.max_active > 0);
}

#if COIR_TLS
TEST(Serve, makes_a_certificate_where_there_is_none_and_keeps_it) {
  const Socket socket;
  char file[160];
  coir::format(file, socket.folder.path(), "/own/cert.pem", '\0');
  struct stat first{}, second{};
  for (struct stat* into : {&first, &second}) {
    const auto end = in_child([&] {
      return beside(
          [&] { return ask(socket.path, "/", "hello"); },
          [&] { return serve({.listen = socket.address, .tls_listen = "127.0.0.1:0", .certificate = file}, hello); });
    });
    CHECK_EQUAL(0, end.status);
    CHECK(end.wrote(" with TLS\n"));
    CHECK_EQUAL(0, stat(file, into));
  }
  CHECK_EQUAL(0600u, first.st_mode & 0777u);
  CHECK_EQUAL(first.st_ino, second.st_ino);
}
#endif

}  // namespace serve_test
