#include "system_log.h"

#include <coir/http/wire/date.h>
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../unix_datagrams.h"

SystemLog::~SystemLog() {
  if (fd_ >= 0) ::close(fd_);
}

int SystemLog::send(const coir::LogRecord& line) noexcept {
  constexpr unsigned kDaemon = 3 << 3;
  constexpr std::size_t kMostSent = 800;
  char date_room[coir::http::kDateBytes], room[1024];
  coir::http::format_date(line.unix_seconds, date_room);  // "Sun, 06 Nov 1994 08:49:37 GMT"
  const std::string_view date(date_room, sizeof date_room);
  const std::string_view day = date[5] == '0' ? date.substr(6, 1) : date.substr(5, 2);
  coir::Formatter out(room);
  out.add("<", kDaemon + static_cast<unsigned>(line.level), ">", date.substr(8, 3), " ", coir::right(day, 2), " ",
          date.substr(17, 8), " coird[", ::getpid(), "]: source=", line.source,
          " msg=", coir::json_quoted(line.text.substr(0, kMostSent)));
  const std::string_view text = out.text();
  int error = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fd_ < 0) fd_ = connect_datagrams(path_);
    if (fd_ < 0) return errno;
    if (::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EMSGSIZE) return 0;
    error = errno;
    if (error == EAGAIN || error == ENOBUFS) return error;
    // The daemon that was there has gone; another may have its name.
    ::close(fd_);
    fd_ = -1;
  }
  return error;
}

int SystemLog::tell_lost(std::uint64_t lost) noexcept {
  char room[80];
  return send({.number = 0,
               .unix_seconds = ::time(nullptr),
               .level = coir::LogLevel::warning,
               .source = "log",
               .text = coir::format(room, lost, " lines are lost")});
}
