#include <coir/port/beneath.h>
#include <coir/port/hardware.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace coir::port {
namespace {

constexpr std::size_t kText = 64;  // of a file: a number or a name

// Path is a path below the root, made of texts and numbers.
class Path {
 public:
  template <class... Parts>
  explicit Path(const Parts&... parts) noexcept {
    (add(parts), ...);
  }
  const char* text() const noexcept { return fits_ ? text_ : nullptr; }

 private:
  void add(std::string_view part) noexcept {
    fits_ = fits_ && part.size() < sizeof text_ - size_;
    if (!fits_) return;
    memcpy(text_ + size_, part.data(), part.size());
    size_ += part.size();
  }
  void add(std::uint32_t number) noexcept {
    char digits[10];
    add(std::string_view(digits,
                         static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits)));
  }

  char text_[160] = {};
  std::size_t size_ = 0;
  bool fits_ = true;
};

// Descriptor closes what it holds. A negative one is an errno.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Content is the text of a small file without its end of line, or an errno.
struct Content {
  char bytes[kText];
  std::size_t size = 0;
  int error = 0;
  std::string_view text() const noexcept { return {bytes, size}; }
};

void read_text(int fd, Content& into) noexcept {
  const ssize_t got = ::pread(fd, into.bytes, sizeof into.bytes, 0);
  into.error = got < 0 ? errno : 0;
  into.size = got < 0 ? 0 : static_cast<std::size_t>(got);
  while (into.size > 0 && (into.bytes[into.size - 1] == '\n' || into.bytes[into.size - 1] == ' ')) --into.size;
}

// Not inlined: several in one function would take more stack than a fiber has.
[[gnu::noinline]] int open_file(int root, const Path& path, bool to_write) noexcept {
  if (path.text() == nullptr) return -ENAMETOOLONG;
  char work[512];
  return to_write ? open_beneath_to_write(root, path.text(), work) : open_beneath(root, path.text(), work);
}

[[gnu::noinline]] Content read_file(int root, const Path& path) noexcept {
  Content content;
  const Descriptor file(open_file(root, path, false));
  if (file.get() < 0) {
    content.error = -file.get();
  } else {
    read_text(file.get(), content);
  }
  return content;
}

// write_file returns 0 or an errno. A driver refuses what it does not like as a failed write.
int write_file(int root, const Path& path, std::string_view text) noexcept {
  const Descriptor file(open_file(root, path, true));
  if (file.get() < 0) return -file.get();
  const ssize_t wrote = ::write(file.get(), text.data(), text.size());
  return wrote < 0 ? errno : wrote == static_cast<ssize_t>(text.size()) ? 0 : EIO;
}

template <class Number>
int parse(const Content& content, Number& into) noexcept {
  if (content.error != 0) return content.error;
  const std::string_view text = content.text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() ? 0 : EINVAL;
}

// parse_nano reads "0.439453125", a number of thousand-millionths; digits behind the ninth are dropped.
int parse_nano(const Content& content, std::int64_t& into) noexcept {
  if (content.error != 0) return content.error;
  std::string_view text = content.text();
  const std::size_t point = std::min(text.find('.'), text.size());
  std::uint32_t whole = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + point, whole);
      error != std::errc() || end != text.data() + point)
    return EINVAL;
  std::int64_t nano = 0;
  text.remove_prefix(std::min(point + 1, text.size()));
  for (std::size_t i = 0; i < 9; ++i) {
    const char digit = i < text.size() ? text[i] : '0';
    if (digit < '0' || digit > '9') return EINVAL;
    nano = nano * 10 + (digit - '0');
  }
  into = std::int64_t{whole} * 1'000'000'000 + nano;
  return 0;
}

std::string_view text_of(std::uint32_t number, char (&digits)[10]) noexcept {
  return {digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits)};
}

// is_name tells whether a name is that of one file: no path leads anywhere else by it.
bool is_name(std::string_view name) noexcept {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

template <std::size_t kSize>
void put_name(char (&into)[kSize], std::string_view name) noexcept {
  const std::size_t size = std::min(name.size(), kSize - 1);
  memcpy(into, name.data(), size);
  into[size] = '\0';
}

// each_entry hands the names of a folder to `take`, as long as that returns true. A folder that is not there has none.
template <class Take>
int each_entry(int root, const Path& folder, Take take) noexcept {
  const Descriptor found(open_file(root, folder, false));
  if (found.get() < 0) return found.get() == -ENOENT ? 0 : -found.get();
  const int readable = ::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (readable < 0) return errno;
  DIR* const listed = ::fdopendir(readable);
  if (listed == nullptr) {
    const int error = errno;
    ::close(readable);
    return error;
  }
  while (const dirent* const entry = ::readdir(listed)) {
    if (is_name(entry->d_name) && !take(std::string_view(entry->d_name))) break;
  }
  ::closedir(listed);
  return 0;
}

// sort_by_name is an insertion sort: there are few, and the order of the kernel's lists is nobody's.
template <class Thing>
void sort_by_name(std::span<Thing> things) noexcept {
  for (std::size_t i = 1; i < things.size(); ++i) {
    for (std::size_t at = i; at > 0 && std::string_view(things[at].name) < std::string_view(things[at - 1].name); --at)
      std::swap(things[at], things[at - 1]);
  }
}

// make_available has the kernel show a pin's files.
int make_available(int root, std::uint32_t number) noexcept {
  const Descriptor there(open_file(root, Path("class/gpio/gpio", number, "/value"), false));
  if (there.get() != -ENOENT) return there.get() < 0 ? -there.get() : 0;
  char digits[10];
  return write_file(root, Path("class/gpio/export"), text_of(number, digits));
}

}  // namespace

Hardware::~Hardware() {
  if (root_ >= 0) ::close(root_);
}

std::expected<Hardware, int> Hardware::open(const char* folder) noexcept {
  const int fd = ::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return std::unexpected(errno);
  return Hardware(fd);
}

std::expected<std::size_t, int> Hardware::thermometers(std::span<Thermometer> into) const noexcept {
  std::size_t count = 0;
  const int error = each_entry(root_, Path("class/thermal"), [&](std::string_view zone) noexcept {
    if (!zone.starts_with("thermal_zone")) return true;
    if (count == into.size()) return false;
    const Content type = read_file(root_, Path("class/thermal/", zone, "/type"));
    if (parse(read_file(root_, Path("class/thermal/", zone, "/temp")), into[count].millidegrees) == 0)
      put_name(into[count++].name, type.error == 0 ? type.text() : zone);
    return true;
  });
  if (error != 0) return std::unexpected(error);
  sort_by_name(into.first(count));
  return count;
}

std::expected<std::size_t, int> Hardware::leds(std::span<Led> into) const noexcept {
  std::size_t count = 0;
  const int error = each_entry(root_, Path("class/leds"), [&](std::string_view name) noexcept {
    if (count == into.size()) return false;
    Led& led = into[count];
    if (name.size() < sizeof led.name &&
        parse(read_file(root_, Path("class/leds/", name, "/brightness")), led.brightness) == 0 &&
        parse(read_file(root_, Path("class/leds/", name, "/max_brightness")), led.most) == 0) {
      put_name(led.name, name);
      ++count;
    }
    return true;
  });
  if (error != 0) return std::unexpected(error);
  sort_by_name(into.first(count));
  return count;
}

std::expected<void, int> Hardware::set_led(std::string_view name, std::uint32_t brightness) const noexcept {
  if (!is_name(name)) return std::unexpected(ENOENT);
  std::uint32_t most = 0;
  if (const int error = parse(read_file(root_, Path("class/leds/", name, "/max_brightness")), most); error != 0)
    return std::unexpected(error);
  if (brightness > most) return std::unexpected(ERANGE);
  char digits[10];
  const int error = write_file(root_, Path("class/leds/", name, "/brightness"), text_of(brightness, digits));
  if (error != 0) return std::unexpected(error);
  return {};
}

std::expected<Pin, int> Hardware::read_pin(std::uint32_t number) const noexcept {
  if (const int error = make_available(root_, number); error != 0) return std::unexpected(error);
  const Content direction = read_file(root_, Path("class/gpio/gpio", number, "/direction"));
  if (direction.error != 0) return std::unexpected(direction.error);
  unsigned value = 0;
  if (const int error = parse(read_file(root_, Path("class/gpio/gpio", number, "/value")), value); error != 0)
    return std::unexpected(error);
  return Pin{.high = value != 0, .output = direction.text() != "in"};
}

std::expected<void, int> Hardware::write_pin(std::uint32_t number, bool high) const noexcept {
  if (const int error = make_available(root_, number); error != 0) return std::unexpected(error);
  const Content direction = read_file(root_, Path("class/gpio/gpio", number, "/direction"));
  int error = direction.error;
  // "out" alone would be low first. A pin whose direction is fixed has no such file.
  if (error == 0 && direction.text() == "in")
    error = write_file(root_, Path("class/gpio/gpio", number, "/direction"), high ? "high" : "low");
  if (error == 0 || error == ENOENT)
    error = write_file(root_, Path("class/gpio/gpio", number, "/value"), high ? "1" : "0");
  if (error != 0) return std::unexpected(error);
  return {};
}

std::expected<Voltage, int> Hardware::read_adc(std::uint32_t device, std::uint32_t channel) const noexcept {
  Voltage voltage = {};
  constexpr std::string_view kDevice = "bus/iio/devices/iio:device";
  int error = parse(read_file(root_, Path(kDevice, device, "/in_voltage", channel, "_raw")), voltage.raw);
  if (error == 0) {
    std::int64_t nano = 0;  // millivolts a step
    int scaled = parse_nano(read_file(root_, Path(kDevice, device, "/in_voltage", channel, "_scale")), nano);
    if (scaled != 0) scaled = parse_nano(read_file(root_, Path(kDevice, device, "/in_voltage_scale")), nano);
    voltage.scaled = scaled == 0 && !__builtin_mul_overflow(nano, voltage.raw, &nano);
    if (voltage.scaled) voltage.microvolts = nano / 1'000'000;
    return voltage;
  }
  if (error != ENOENT) return std::unexpected(error);
  const Path chosen("class/cvi-saradc/cvi-saradc", device, "/device/cv_saradc");
  char digits[10];
  error = write_file(root_, chosen, text_of(channel, digits));
  if (error == 0) error = parse(read_file(root_, chosen), voltage.raw);
  if (error != 0) return std::unexpected(error);
  return voltage;
}

}  // namespace coir::port
