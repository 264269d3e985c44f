#pragma once

#include <coir/net/address.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "mdns/responder.h"

// A network of the test's own: hosts with responders, and wires that carry what they say. Time goes on when the test says so.
namespace coir::test {

using mdns::Arrival;
using mdns::Interface;
using mdns::Interfaces;
using mdns::Responder;

struct Message {
  std::int64_t at;
  int host;  // who sent it; -1: the test
  std::uint32_t interface;
  bool ipv6, unicast;
  std::string bytes;
  Address to;  // of a unicast message
};

// Line is a record of a message, or a question, as text: "A board.local 10.0.0.1 120 flush".
inline std::string name_at(const names::MessageReader& reader, std::size_t at) {
  names::Name name;
  if (!reader.copy_name(at, name)) return "?";
  std::string text;
  const auto wire = name.wire();
  for (std::size_t i = 0; wire[i] != 0; i += 1u + wire[i]) {
    if (!text.empty()) text += '.';
    text.append(reinterpret_cast<const char*>(&wire[i + 1]), wire[i]);
  }
  return text;
}

struct Lines {
  std::vector<std::string> questions, answers, authorities, additionals;
};

inline std::string data_of(const names::MessageReader& reader, const names::Record& record) {
  const auto data = reader.data(record);
  char text[64];
  switch (record.type) {
    case names::kTypeA:
      return std::to_string(data[0]) + "." + std::to_string(data[1]) + "." + std::to_string(data[2]) + "." +
             std::to_string(data[3]);
    case names::kTypePtr:
      return name_at(reader, record.data_at);
    case names::kTypeSrv:
      return std::to_string(data[4] << 8 | data[5]) + " " + name_at(reader, record.data_at + 6);
    case names::kTypeTxt:
      return std::string(reinterpret_cast<const char*>(data.data()) + 1, data.size() - 1);
    default: {
      std::string all;
      for (const unsigned char byte : data.subspan(record.type == names::kTypeNsec ? data.size() - 1 : 0)) {
        snprintf(text, sizeof text, "%02x", byte);
        all += text;
      }
      return all;
    }
  }
}

inline std::string type_name(std::uint16_t type) {
  switch (type) {
    case names::kTypeA:
      return "A";
    case names::kTypeAaaa:
      return "AAAA";
    case names::kTypePtr:
      return "PTR";
    case names::kTypeSrv:
      return "SRV";
    case names::kTypeTxt:
      return "TXT";
    case names::kTypeNsec:
      return "NSEC";
    case names::kTypeAny:
      return "ANY";
    default:
      return std::to_string(type);
  }
}

inline Lines read(const std::string& bytes) {
  Lines lines;
  names::MessageReader reader({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
  names::MessageHeader header;
  if (!reader.read(header)) return lines;
  for (unsigned i = 0; i < header.questions; ++i) {
    names::Question question;
    if (!reader.read(question)) return lines;
    lines.questions.push_back(type_name(question.type) + " " + name_at(reader, question.name_at) +
                              ((question.klass & names::kUnicastWanted) != 0 ? " QU" : ""));
  }
  const auto section = [&](unsigned count, std::vector<std::string>& into) {
    for (unsigned i = 0; i < count; ++i) {
      names::Record record;
      if (!reader.read(record)) return;
      into.push_back(type_name(record.type) + " " + name_at(reader, record.name_at) + " " + data_of(reader, record) +
                     " " + std::to_string(record.ttl) + ((record.klass & names::kCacheFlush) != 0 ? " flush" : ""));
    }
  };
  section(header.answers, lines.answers);
  section(header.authorities, lines.authorities);
  section(header.additionals, lines.additionals);
  return lines;
}

inline bool has(const std::vector<std::string>& lines, const std::string& wanted) {
  for (const auto& line : lines) {
    if (line.starts_with(wanted)) return true;
  }
  return false;
}

inline mdns::LinkAddress ipv4(std::array<unsigned char, 4> bytes) {
  mdns::LinkAddress address;
  memcpy(address.bytes, bytes.data(), 4);
  address.size = 4;
  address.prefix = 24;
  return address;
}

inline Interface interface(std::uint32_t index, std::initializer_list<mdns::LinkAddress> addresses) {
  Interface made;
  made.index = index;
  for (const auto& each : addresses) made.addresses[made.count++] = each;
  return made;
}

// Network is hosts that are all on one wire, by each of their interfaces.
class Network {
 public:
  struct Host {
    Host(Network& network, int number, std::uint32_t seed)
        : network(network),
          number(number),
          responder({[this](auto... of_message) { send(of_message...); },
                     [this](std::string_view label) { names.emplace_back(label); }},
                    seed) {}
    void send(std::span<const unsigned char> bytes, std::uint32_t interface, bool ipv6, const Address* to) {
      network.said_.push_back({network.now, number, interface, ipv6, to != nullptr,
                               std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                               to != nullptr ? *to : Address()});
      network.carried_.push_back(network.said_.back());
    }

    Network& network;
    int number;
    Responder responder;
    Interfaces interfaces;
    bool connected = true;
    std::vector<std::string> names;
  };

  // add has a host that is called `name`, with its interfaces, and a web server on `port` if that is not 0.
  Host& add(const char* name, std::initializer_list<Interface> interfaces, std::uint16_t port = 80) {
    Host& host =
        hosts_.emplace_back(*this, static_cast<int>(hosts_.size()), static_cast<std::uint32_t>(hosts_.size() * 77 + 5));
    static constexpr std::string_view kText[] = {"path=/"};
    const mdns::Service services[] = {{.type = "_http._tcp", .port = port, .text = kText}};
    if (const char* bad =
            host.responder.publish({.name = name, .services = std::span(services).first(port != 0 ? 1 : 0)})) {
      host.names.emplace_back(bad);
    }
    for (const auto& each : interfaces) host.interfaces.list[host.interfaces.count++] = each;
    host.responder.set_interfaces(host.interfaces, now);
    return host;
  }

  // run lets time go on by so many milliseconds.
  void run(std::int64_t milliseconds) {
    const std::int64_t end = now + milliseconds;
    for (;;) {
      deliver();
      std::int64_t soonest = end;
      for (Host& host : hosts_) soonest = std::min(soonest, host.responder.next());
      now = std::max(now, soonest);
      if (now >= end && soonest >= end) break;
      for (Host& host : hosts_) host.responder.tick(room_, now);
    }
    deliver();
  }

  // say has `bytes` come to everybody, from 10.0.0.`from` and a port, to the group or not.
  void say(const std::string& bytes, unsigned char from = 99, std::uint16_t port = 5353, bool group = true,
           std::uint32_t interface = 1) {
    for (Host& host : hosts_) give(host, bytes, peer({10, 0, 0, from}, port), interface, group);
    deliver();
  }

  static Address peer(std::array<unsigned char, 4> bytes, std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = static_cast<in_port_t>(port << 8 | port >> 8);
    memcpy(&name.sin_addr, bytes.data(), 4);
    return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }

  void give(Host& host, const std::string& bytes, const Address& from, std::uint32_t interface, bool group) {
    const Arrival arrival{{reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()}, from, interface, group};
    host.responder.receive(arrival, room_, now);
  }

  // said is everything that was sent since the last forget.
  const std::vector<Message>& said() const { return said_; }
  void forget() { said_.clear(); }
  // answers is how often a line that begins so was sent as an answer to the group.
  int answers(const std::string& line, bool unicast = false) const {
    int count = 0;
    for (const auto& each : said_) count += each.unicast == unicast && has(read(each.bytes).answers, line);
    return count;
  }
  int probes(int host) const {
    int count = 0;
    for (const auto& each : said_) count += each.host == host && !read(each.bytes).authorities.empty();
    return count;
  }

  std::span<unsigned char> room() { return room_; }
  std::int64_t now = 1'000'000;

 private:
  // Everybody hears what is said to the group, its sender too, by each of its interfaces.
  void deliver() {
    while (!carried_.empty()) {
      const Message message = carried_.front();
      carried_.pop_front();
      Host& sender = hosts_[static_cast<std::size_t>(message.host)];
      if (!sender.connected || message.ipv6) continue;
      const Interface* by = sender.interfaces.find(message.interface);
      if (by == nullptr) continue;
      for (Host& host : hosts_) {
        if (!host.connected) continue;
        for (const Interface& each : host.interfaces.all()) {
          if (message.unicast && !each.owns(mdns::bytes_of(message.to))) continue;
          const unsigned char* from = by->addresses[0].bytes;
          give(host, message.bytes, peer({from[0], from[1], from[2], from[3]}, 5353), each.index, !message.unicast);
        }
      }
    }
  }

  std::deque<Host> hosts_;
  std::vector<Message> said_;
  std::deque<Message> carried_;
  unsigned char room_[4096];
};

}  // namespace coir::test
