#include <coir/port/cpu_quota.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace coir::port {
namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

// Path is a path made of parts; one that does not fit names nothing.
class Path {
 public:
  Path(std::initializer_list<std::string_view> parts) noexcept {
    for (const std::string_view part : parts) {
      fits_ = fits_ && part.size() < sizeof text_ - size_;
      if (!fits_) return;
      std::copy(part.begin(), part.end(), text_ + size_);
      size_ += part.size();
    }
  }
  int open() const noexcept { return fits_ ? ::open(text_, O_RDONLY | O_CLOEXEC) : -1; }

 private:
  char text_[512] = {};
  std::size_t size_ = 0;
  bool fits_ = true;
};

// Not inlined: each frame is bounded.
[[gnu::noinline]] int open_path(std::initializer_list<std::string_view> parts) noexcept {
  return Path(parts).open();
}

// Numbers are the first two of a small file; "max" and -1, for no limit, and what is missing read as kNone.
struct Numbers {
  std::uint64_t first = kNone, second = kNone;
};

[[gnu::noinline]] Numbers read_numbers(std::initializer_list<std::string_view> path) noexcept {
  Numbers numbers;
  const int fd = open_path(path);
  if (fd < 0) return numbers;
  char text[64];
  const ssize_t got = ::read(fd, text, sizeof text);
  ::close(fd);
  if (got <= 0) return numbers;
  const char* const end = text + got;
  const char* const space = std::find(static_cast<const char*>(text), end, ' ');
  std::from_chars(text, space, numbers.first);
  if (space != end) std::from_chars(space + 1, end, numbers.second);
  return numbers;
}

unsigned whole_cpus(std::uint64_t quota, std::uint64_t period) noexcept {
  if (quota == kNone || quota == 0 || period == kNone || period == 0) return 0;
  return static_cast<unsigned>(std::min<std::uint64_t>((quota - 1) / period + 1, UINT32_MAX));
}

// least_of takes the limits of a group and of those around it, up to the folder where its kind is mounted. In a
// container the path may be the host's, of which only that folder is there.
unsigned least_of(const char* root, std::string_view mounted, std::string_view group, bool unified) noexcept {
  unsigned least = 0;
  for (;;) {
    if (group == "/") group = {};
    const auto number = [&](std::string_view name) { return read_numbers({root, mounted, group, name}); };
    unsigned here;
    if (unified) {
      const Numbers both = number("/cpu.max");
      here = whole_cpus(both.first, both.second);
    } else {
      here = whole_cpus(number("/cpu.cfs_quota_us").first, number("/cpu.cfs_period_us").first);
    }
    if (here != 0 && (least == 0 || here < least)) least = here;
    if (group.empty()) return least;
    const std::size_t slash = group.rfind('/');
    group = {group.data(), slash == group.npos ? 0 : slash};
  }
}

// LineReader reads a file of /proc by lines. The rest of a long one is left out.
class LineReader {
 public:
  explicit LineReader(int fd) noexcept : fd_(fd) {}
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool next(std::string_view& line) noexcept {
    std::size_t size = 0;
    char byte;
    bool any = false;
    while (take(byte)) {
      any = true;
      if (byte == '\n') break;
      if (size < sizeof text_) text_[size++] = byte;
    }
    line = {text_, size};
    return any;
  }

 private:
  bool take(char& byte) noexcept {
    if (at_ == read_) {
      at_ = 0;
      read_ = fd_ < 0 ? 0 : ::read(fd_, ahead_, sizeof ahead_);
      if (read_ <= 0) return read_ = 0, false;
    }
    byte = ahead_[at_++];
    return true;
  }

  int fd_;
  ssize_t at_ = 0, read_ = 0;  // of `ahead_`
  char ahead_[128];
  char text_[400];
};

bool names_cpu(std::string_view controllers) noexcept {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (std::string_view(controllers.data(), comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

// A line of /proc/self/cgroup is "ID:CONTROLLERS:/PATH", with ID 0 and no controllers for version 2.
unsigned cpu_quota(const char* root) noexcept {
  unsigned least = 0;
  LineReader lines(open_path({root, "/proc/self/cgroup"}));
  for (std::string_view line; lines.next(line);) {
    const std::size_t first = line.find(':'), second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    const std::string_view group(line.data() + second + 1, line.size() - second - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_cpu(controllers)) continue;
    using Places = std::initializer_list<std::string_view>;
    for (const std::string_view place :
         unified ? Places{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
                 : Places{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu"}) {
      const unsigned here = least_of(root, place, group, unified);
      if (here != 0 && (least == 0 || here < least)) least = here;
    }
  }
  return least;
}

}  // namespace coir::port
