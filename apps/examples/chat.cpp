// A chat with rooms over TCP. `nc HOST PORT`: the first line is one's name, the others are for the room, unless they are
// "/join ROOM", "/who" or "/quit". A member is one fiber, which waits for its client and its room in one wait. A member
// that reads too slowly for the room is disconnected. SIGTERM closes the rooms after delivering every message.

#include <coir/broadcast.h>
#include <coir/format.h>
#include <coir/nursery.h>
#include <coir/print.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/signal.h>
#include <coir/spinlock.h>
#include <coir/stream_lines.h>
#include <coir/tcp.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string_view>

using namespace std::chrono_literals;
using coir::Deadline;
using coir::ErrorCode;
using coir::format;

namespace {

constexpr std::size_t kMostMembers = 64, kMostRooms = 16, kMostName = 16, kMostLine = 256;
constexpr int kBacklog = 32;  // lines that a member may lag behind its room

template <std::size_t kSize>
struct Text {
  char bytes[kSize];
  std::size_t size = 0;

  template <class... Parts>
  explicit Text(const Parts&... parts) : size(format(bytes, parts...).size()) {}
  std::string_view view() const { return {bytes, size}; }
};
using Name = Text<kMostName>;
using Line = Text<kMostLine + 2 * kMostName>;

struct Room {
  Name name;
  int members = 0;
  coir::Broadcast<Line> lines;
};

struct Member {
  Name name;
  Room* room = nullptr;
};

// Chat knows who is where.
class Chat {
 public:
  // admit takes a member up under its name. False: somebody has the name, or all places are taken.
  bool admit(Member& member) {
    const coir::Locked held(lock_);
    Member** free = nullptr;
    for (Member*& each : members_) {
      if (each == nullptr) free = &each;
      if (each != nullptr && each->name.view() == member.name.view()) return false;
    }
    if (free != nullptr) *free = &member;
    return free != nullptr;
  }

  void dismiss(Member& member) {
    move(member, nullptr);
    const coir::Locked held(lock_);
    for (Member*& each : members_) {
      if (each == &member) each = nullptr;
    }
  }

  // enter moves a member to a room, which is opened if nobody is there. False: there are too many rooms.
  bool enter(Member& member, std::string_view name) {
    Room* const room = find(name);
    if (room != nullptr) move(member, room);
    return room != nullptr;
  }

  // who lists the members of a room.
  std::string_view who(const Room* room, std::span<char> into) {
    const coir::Locked held(lock_);
    coir::Formatter out(into);
    out.add("* here:");
    for (const Member* each : members_) {
      if (each != nullptr && each->room == room) out.add(" ", each->name.view());
    }
    return out.add("\n").text();
  }

  void close() {
    for (Room& room : rooms_) room.lines.close();
  }

 private:
  Room* find(std::string_view name) {
    const coir::Locked held(lock_);
    Room* free = nullptr;
    for (Room& room : rooms_) {
      if (room.members > 0 && room.name.view() == name) return ++room.members, &room;
      if (room.members == 0) free = &room;
    }
    if (free == nullptr) return nullptr;
    free->name = Name(name);
    free->members = 1;
    return free;
  }

  void move(Member& member, Room* room) {
    if (member.room != nullptr) say(*member.room, "* ", member.name.view(), " has left\n");
    {
      const coir::Locked held(lock_);
      if (member.room != nullptr) --member.room->members;
      member.room = room;
    }
  }

 public:
  template <class... Parts>
  static void say(Room& room, const Parts&... parts) {
    static_cast<void>(room.lines.publish(Line(parts...)));
  }

 private:
  coir::Spinlock lock_;  // held for a look at the tables, never across a wait
  Member* members_[kMostMembers] = {};
  Room rooms_[kMostRooms];
};

// Visit is a member's stay, from its name to its end.
class Visit {
 public:
  Visit(Chat& chat, coir::TcpStream& client) : chat_(chat), client_(client), lines_(client, buffer_) {}

  void run() {
    answer("* your name?\n");
    const auto name = lines_.next(Deadline::after(60s));
    if (!name || name->empty() || name->size() > kMostName || name->contains(' ')) return answer("* no name\n");
    member_.name = Name(*name);
    if (!chat_.admit(member_)) return answer("* the name is taken, or the chat is full\n");
    if (enter("lobby")) talk();
    feed_.reset();
    chat_.dismiss(member_);
  }

 private:
  // talk takes what the client has sent and what the room has heard, until one of them ends.
  void talk() {
    for (;;) {
      const auto line = lines_.next(Deadline::now());
      if (line && !obey(*line)) return;
      if (!line && line.error() == ErrorCode::limit) answer("* that line is too long\n");
      if (line || line.error() == ErrorCode::limit) continue;
      if (line.error() != ErrorCode::timed_out) return;
      Line heard;
      const auto won = coir::select({coir::Case::readable(client_.fd()), coir::Case::receive(*feed_, heard)});
      if (!won) return;
      if (won->index == 0) continue;
      if (won->closed) return answer(feed_->missed() > 0 ? "* you are too slow\n" : "* the chat is closed\n");
      if (!client_.write(heard.view(), Deadline::after(5s))) return;
    }
  }

  // obey does what a line asks for. False: the member wants to go.
  bool obey(std::string_view line) {
    char text[kMostMembers * (kMostName + 1) + 16];
    if (line == "/quit") return false;
    if (line == "/who") {
      answer(chat_.who(member_.room, text));
    } else if (line.starts_with("/join ") && line.size() <= 6 + kMostName) {
      return enter(line.substr(6));
    } else if (line.starts_with('/')) {
      answer("* /join ROOM, /who, /quit\n");
    } else if (!line.empty()) {
      Chat::say(*member_.room, member_.name.view(), ": ", line, "\n");
    }
    return true;
  }

  bool enter(std::string_view room) {
    feed_.reset();
    if (!chat_.enter(member_, room)) return answer("* there are too many rooms\n"), false;
    feed_.emplace(member_.room->lines, coir::SubscriptionOptions{kBacklog, coir::WhenSlow::disconnect});
    Chat::say(*member_.room, "* ", member_.name.view(), " has come to ", room, "\n");
    return true;
  }

  void answer(std::string_view text) { static_cast<void>(client_.write(text, Deadline::after(5s))); }

  Chat& chat_;
  coir::TcpStream& client_;
  char buffer_[kMostLine + 2];
  coir::StreamLines<coir::TcpStream> lines_;
  Member member_;
  std::optional<coir::Subscription<Line>> feed_;
};

std::expected<void, coir::Error> serve(const coir::Address& address) {
  if (auto caught = coir::catch_signals({SIGTERM, SIGINT}); !caught) return caught;
  auto listener = coir::TcpListener::listen(address);
  if (!listener) return std::unexpected(listener.error());
  char text[coir::Address::kMaxText];
  coir::print("listening on ", listener->local_address().format(text), "\n");

  static Chat chat;
  coir::Nursery visits({.limit = kMostMembers});
  auto accepting = visits.spawn({.name = "accept"}, [&] {
    return coir::accept_each(*listener, [&](coir::TcpStream client) {
      visits.start({.name = "member", .stack = 16 * 1024},
                   [client = std::move(client)]() mutable { Visit(chat, client).run(); });
    });
  });
  if (auto signal = coir::wait_signal({SIGTERM, SIGINT}); !signal) return std::unexpected(signal.error());
  listener->close();
  chat.close();
  static_cast<void>(visits.join(Deadline::after(1s)));
  coir::print("closed\n");
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return coir::print("usage: chat ADDRESS    a chat with rooms, on 127.0.0.1:7000 for instance\n"), 0;
  const auto address = coir::Address::parse(words[1]);
  if (!address) return coir::print("chat: '", words[1], "': ", address.error(), "\n"), 2;
  return coir::run([&] { return serve(*address); });
}
