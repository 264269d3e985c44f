// A file whose pages are not in memory: a thread of the pool reads them into the handler's buffers, and the handler's place is
// lent meanwhile.

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/http/handler_server.h"

namespace http_cold_file_test {

using namespace coir::test;
using coir::Address;

namespace {

constexpr std::size_t kFileBytes = 64 * 1024;
constexpr std::size_t kOtherBytes = 600;

std::atomic<bool> cold{false};
std::atomic<bool> other_writes{false};
std::atomic<bool> has_read{false};

// read_cold is pread: it begins once the other handler has written.
ssize_t read_cold(int file, void* into, std::size_t size, off_t at);

void serve(Exchange& exchange) {
  Seen& seen = seen_by(exchange);
  exchange.start(200);
  if (exchange.request().path == "/file") {
    // From its first wait on its place is lent at once.
    seen.expect(coir::sleep(25ms).has_value());
    const int file = memfd_create("cold", MFD_CLOEXEC);
    char text[1024];
    memset(text, 'f', sizeof text);
    for (std::size_t at = 0; at < kFileBytes; at += sizeof text) {
      seen.expect(::write(file, text, sizeof text) == static_cast<ssize_t>(sizeof text));
    }
    seen.expect(exchange.begin_fixed(kFileBytes).has_value());
    cold = true;
    seen.expect(exchange.send_file(file, 0, kFileBytes).has_value());
    ::close(file);
  } else {
    char text[kOtherBytes];
    memset(text, 'o', sizeof text);
    seen.expect(exchange.begin_fixed(sizeof text).has_value());
    seen.expect(exchange.write({text, sizeof text}).has_value());
    other_writes = true;
    seen.expect(until([] { return has_read.load(); }, soon()));
  }
  ++seen.answered;
}

}  // namespace

extern "C" {
ssize_t __real_preadv2(int file, const iovec* parts, int count, off_t at, int flags);
ssize_t __wrap_preadv2(int file, const iovec* parts, int count, off_t at, int flags) {
  if (!cold) return __real_preadv2(file, parts, count, at, flags);
  errno = EAGAIN;
  return -1;
}
ssize_t __real_pread(int file, void* into, std::size_t size, off_t at);
ssize_t __wrap_pread(int file, void* into, std::size_t size, off_t at) {
  return cold ? read_cold(file, into, size, at) : __real_pread(file, into, size, at);
}
}

namespace {

ssize_t read_cold(int file, void* into, std::size_t size, off_t at) {
  while (!other_writes) usleep(kPauseMicros);
  const ssize_t got = __real_pread(file, into, size, at);
  cold = false;
  has_read = true;
  return got;
}

}  // namespace

TEST_GROUP_BASE(HttpColdFile, HandlerServer) {};

TEST(HttpColdFile, is_read_into_buffers_that_others_do_not_get_meanwhile) {
  serving({.handler = serve, .max_active = 1}, [&](Server&, const Address& address, Seen& seen) {
    cold = other_writes = has_read = false;
    Client file(address);
    expect(file.say("GET /file HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([] { return cold.load(); }, soon()));
    Client other(address);
    expect(other.say("GET /other HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n") && other.hear("\r\n\r\n"));
    char wanted[kOtherBytes];
    memset(wanted, 'o', sizeof wanted);
    expect(other.hear({wanted, sizeof wanted}));
    expect(until([&] { return seen.answered == 2; }, soon()));
    file.reset();
    other.reset();
  });
}

}  // namespace http_cold_file_test
