// A chat: what one member types everybody hears. Each member is one fiber that waits for two things at once, for what
// its user types and for what the others say, and whoever is slow hears the latest lines.

#include <coir/broadcast.h>
#include <coir/channel.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <stdio.h>

namespace {

struct Line {
  const char* who;
  const char* text;
};

struct Member {
  explicit Member(const char* who) : name(who) {}

  const char* name;
  coir::Channel<const char*> keyboard;
  int heard = 0;
};

// chat is a member's loop. It ends when the keyboard is closed or the room is.
void chat(Member& self, coir::Broadcast<Line>& room) {
  coir::Subscription<Line> feed(room, {.capacity = 8, .when_slow = coir::WhenSlow::drop_oldest});
  for (;;) {
    const char* typed = nullptr;
    Line said{};
    const auto won = coir::select({coir::Case::receive(self.keyboard, typed), coir::Case::receive(feed, said)});
    if (!won || won->closed) break;
    if (won->index == 0) {
      static_cast<void>(room.publish({self.name, typed}));
    } else {
      ++self.heard;
    }
  }
  while (feed.receive(coir::Deadline::now())) ++self.heard;  // what lies there still
}

}  // namespace

int main() {
  return coir::run([] {
    coir::Broadcast<Line> room;
    coir::Subscription<Line> log(room);
    const auto type = [&log](Member& member, const char* text) {
      static_cast<void>(member.keyboard.send(text));
      if (const auto line = log.receive()) printf("%s: %s\n", line->who, line->text);
    };

    Member ann("ann"), bob("bob");
    coir::Nursery members;
    coir::Fiber first = members.spawn({.name = "ann"}, [&] { chat(ann, room); });
    coir::Fiber second = members.spawn({.name = "bob"}, [&] { chat(bob, room); });
    while (room.subscribers() < 3) coir::yield();

    type(ann, "is anybody here?");
    type(bob, "always");
    type(bob, "but I have to go");
    bob.keyboard.close();
    static_cast<void>(second.join());
    type(ann, "alone again");
    room.close();
    static_cast<void>(first.join());
    printf("ann heard %d lines, bob %d\n", ann.heard, bob.heard);
  });
}
