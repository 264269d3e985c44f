#include "mdns/published.h"

#include <coir/format.h>
#include <string.h>

#include <algorithm>

namespace coir::mdns {
namespace {

bool is_host_label(std::string_view label) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.front() != '-' && label.back() != '-' && std::ranges::all_of(label, plain);
}

bool is_type(std::string_view type) noexcept {
  const std::size_t dot = type.find('.');
  if (dot == type.npos || dot < 2 || dot > 16 || type[0] != '_' || !is_host_label(type.substr(1, dot - 1)))
    return false;
  return type.substr(dot) == "._tcp" || type.substr(dot) == "._udp";
}

// Every length was checked by set: no name is refused.
names::Name joined(std::string_view label, std::string_view rest) noexcept {
  names::Name name;
  static_cast<void>(name.set(label) && name.append(rest));
  return name;
}

}  // namespace

const char* bad_name(std::string_view name) noexcept {
  if (name.empty()) return "a name is missing";
  if (name.size() > 63) return "a name has 63 characters at most";
  if (name.find('.') != name.npos) return "a name without a dot is wanted: .local is put behind it";
  if (!is_host_label(name)) return "a name has letters, digits and hyphens, and no hyphen at an end";
  return nullptr;
}

const char* Published::set(const Options& options) noexcept {
  if (const char* bad = bad_name(options.name)) return bad;
  if (options.services.size() > kMostServices) return "there are too many services";
  label_size_ = static_cast<std::uint8_t>(options.name.copy(label_, sizeof label_));
  service_count_ = 0;
  for (const Service& service : options.services) {
    Entry& entry = entries_[service_count_++];
    if (!is_type(service.type)) return "a service's type is one such as _http._tcp";
    if (service.port == 0) return "a service's port is missing";
    if (service.instance.size() > sizeof entry.instance || service.instance.find('.') != service.instance.npos ||
        service.instance.find('\0') != service.instance.npos) {
      return "a service's name has 63 bytes at most, and no dot";
    }
    entry.port = service.port;
    entry.type_size = static_cast<std::uint8_t>(service.type.copy(entry.type, sizeof entry.type));
    entry.instance_size = static_cast<std::uint8_t>(service.instance.copy(entry.instance, sizeof entry.instance));
    entry.text_size = 0;
    for (const std::string_view text : service.text) {
      if (text.size() > 255 || entry.text_size + 1 + text.size() > kMostText) return "a service's text is too long";
      entry.text[entry.text_size++] = static_cast<unsigned char>(text.size());
      memcpy(entry.text + entry.text_size, text.data(), text.size());
      entry.text_size = static_cast<std::uint16_t>(entry.text_size + text.size());
    }
    if (entry.text_size == 0) entry.text[entry.text_size++] = 0;  // RFC 6763, 6.1
  }
  return nullptr;
}

std::string_view Published::numbered(std::string_view label, std::span<char> into) const noexcept {
  char digits[8];
  const std::string_view suffix = number_ == 1 ? std::string_view() : format(digits, "-", number_);
  std::string_view cut = label.substr(0, kMostLabel - suffix.size());
  // A character of several bytes is left out as a whole.
  while (cut.size() < label.size() && !cut.empty() && (label[cut.size()] & 0xc0) == 0x80) cut.remove_suffix(1);
  return format(into, cut, suffix);
}

std::string_view Published::label(std::span<char> into) const noexcept {
  return numbered({label_, label_size_}, into);
}

names::Name Published::host() const noexcept {
  char room[kMostLabel + 1];
  return joined(label(room), "local");
}

names::Name Published::type(std::size_t service) const noexcept {
  return joined({entries_[service].type, entries_[service].type_size}, "local");
}

names::Name Published::instance(std::size_t service) const noexcept {
  const Entry& entry = entries_[service];
  char room[kMostLabel + 1];
  names::Name name =
      joined(entry.instance_size == 0 ? label(room) : numbered({entry.instance, entry.instance_size}, room),
             {entry.type, entry.type_size});
  static_cast<void>(name.append("local"));
  return name;
}

names::Name Published::listing() noexcept {
  return joined("_services._dns-sd._udp", "local");
}

names::Name Published::reverse(const LinkAddress& address) noexcept {
  char room[80];
  Formatter text(room);
  for (std::size_t i = address.size; i-- > 0;) {
    const unsigned byte = address.bytes[i];
    if (address.size == 4) {
      text.add(byte, i == 0 ? "" : ".");
      continue;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    const char nibbles[] = {kDigits[byte & 15], '.', kDigits[byte >> 4], '.'};
    text.add(std::string_view(nibbles, i == 0 ? 3 : 4));
  }
  return joined(text.text(), address.size == 4 ? "in-addr.arpa" : "ip6.arpa");
}

}  // namespace coir::mdns
