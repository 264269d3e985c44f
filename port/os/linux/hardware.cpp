#include <coir/port/hardware.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "sysfs.h"

namespace coir::port {

using sysfs::Content;
using sysfs::Descriptor;
using sysfs::Digits;
using sysfs::each_entry;
using sysfs::is_name;
using sysfs::open_file;
using sysfs::parse;
using sysfs::Path;
using sysfs::put_name;
using sysfs::read_file;
using sysfs::write_file;

namespace {

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

// sort_by_name is an insertion sort: there are few, and the order of the kernel's lists is nobody's.
template <class Thing>
void sort_by_name(std::span<Thing> things) noexcept {
  for (std::size_t i = 1; i < things.size(); ++i) {
    for (std::size_t at = i; at > 0 && std::string_view(things[at].name) < std::string_view(things[at - 1].name); --at)
      std::swap(things[at], things[at - 1]);
  }
}

// convert_chosen writes the channel to a converter of CVITEK's and reads it. The driver remembers one channel for everybody: the
// file's lock says who converts, so that no other process of ours chooses another channel in between. Kernels may lack
// such locks.
int convert_chosen(int root, const Path& converter, std::uint32_t channel, std::int32_t& raw) noexcept {
  const Descriptor chosen(open_file(root, converter, true));
  if (chosen.get() < 0) return -chosen.get();
  // A kernel without file locks (ENOSYS) converts all the same.
  if (::flock(chosen.get(), LOCK_EX | LOCK_NB) != 0 && errno != ENOSYS) return errno == EWOULDBLOCK ? EBUSY : errno;
  const Digits digits(channel);
  const ssize_t wrote = ::write(chosen.get(), digits.bytes, digits.size);
  if (wrote < 0) return errno;
  if (wrote != static_cast<ssize_t>(digits.size)) return EIO;
  return parse(read_file(root, converter), raw);
}

// Not inlined, so that a list and its folder's names do not share a frame with what is read.
[[gnu::noinline]] bool read_zone(int root, std::string_view zone, Thermometer& into) noexcept {
  if (parse(read_file(root, Path("class/thermal/", zone, "/temp")), into.millidegrees) != 0) return false;
  const Content type = read_file(root, Path("class/thermal/", zone, "/type"));
  put_name(into.name, type.error == 0 ? type.text() : zone);
  return true;
}

[[gnu::noinline]] bool read_led(int root, std::string_view name, Led& into) noexcept {
  if (name.size() >= sizeof into.name ||
      parse(read_file(root, Path("class/leds/", name, "/brightness")), into.brightness) != 0 ||
      parse(read_file(root, Path("class/leds/", name, "/max_brightness")), into.most) != 0)
    return false;
  put_name(into.name, name);
  return true;
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

bool Hardware::has_thermometers() const noexcept {
  struct stat found;
  return ::fstatat(root_, "class/thermal/thermal_zone0", &found, 0) == 0;
}

std::expected<std::size_t, int> Hardware::thermometers(std::span<Thermometer> into) const noexcept {
  std::size_t count = 0;
  const int error = each_entry(root_, Path("class/thermal"), [&](std::string_view zone) noexcept {
    if (!zone.starts_with("thermal_zone")) return true;
    if (count == into.size()) return false;
    if (read_zone(root_, zone, into[count])) ++count;
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
    if (read_led(root_, name, into[count])) ++count;
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
  const int error = write_file(root_, Path("class/leds/", name, "/brightness"), Digits(brightness).text());
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
  error = convert_chosen(root_, Path("class/cvi-saradc/cvi-saradc", device, "/device/cv_saradc"), channel, voltage.raw);
  if (error != 0) return std::unexpected(error);
  return voltage;
}

}  // namespace coir::port
