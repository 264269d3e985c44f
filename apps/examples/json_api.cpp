// A JSON API over HTTP and HTTPS, written from the headers: the rooms of a house, each with a target temperature.
//
//   GET    /rooms         [{"name":"kitchen","target":21},{"name":"hall"}, ...]
//   GET    /rooms/{id}    {"name":"kitchen","target":21}
//   PUT    /rooms/{id}    sets {"target":19}, from 5 to 30 degrees; 400 names what is wrong
//   DELETE /rooms/{id}    switches the heating off: the room has no target until the next PUT
//
// Other errors are {"status":404}. SIGTERM lets requests end, then ends the program.

#include <coir/http.h>
#include <coir/spinlock.h>
#include <stdio.h>

#include <array>
#include <optional>

using namespace coir::http;

struct Room {
  std::string_view name;
  std::optional<int> target;
};
constexpr auto fields_of(const Room*) {
  return coir::fields(coir::field<&Room::name>("name"), coir::field<&Room::target>("target"));
}

// House returns copies of its rooms, for handlers run on several workers at once.
class House {
 public:
  std::array<Room, 3> rooms() {
    const coir::Locked locked(lock_);
    return rooms_;
  }
  std::optional<Room> find(unsigned id) { return id < rooms_.size() ? std::optional(rooms()[id]) : std::nullopt; }
  std::optional<Room> set(unsigned id, std::optional<int> target) {
    const coir::Locked locked(lock_);
    if (id >= rooms_.size()) return std::nullopt;
    rooms_[id].target = target;
    return rooms_[id];
  }

 private:
  coir::Spinlock lock_;
  std::array<Room, 3> rooms_{{{"kitchen", 21}, {"hall", {}}, {"attic", 17}}};
};

int main(int count, char** words) {
  if (count != 4) return puts("usage: json_api ADDRESS TLS-ADDRESS CERTIFICATE    such as :8080 :8443 house.pem"), 0;
  House house;
  auto app =
      routes(get<"/rooms">([&](Exchange& exchange) { exchange.respond_json(house.rooms()); }),
             get<"/rooms/{id}">([&](Exchange& exchange, unsigned id) { exchange.respond_json(house.find(id)); }),
             put<"/rooms/{id}">([&](Exchange& exchange, unsigned id) {
               const auto document = read_json(exchange, {.max_bytes = 256});
               if (!document) return;  // it has been answered
               const auto target = document->root()["target"].integer(5, 30);
               target ? exchange.respond_json(house.set(id, *target)) : refuse_json(exchange, *document);
             }),
             del<"/rooms/{id}">([&](Exchange& exchange, unsigned id) { exchange.respond_json(house.set(id, {})); }),
             on_error([](Exchange& exchange, int status) {
               char text[32];
               exchange.respond(status, "application/json", coir::format(text, "{\"status\":", status, "}\n"));
             }));
  ServeOptions options = {.name = "json_api", .listen = words[1], .tls_listen = words[2], .certificate = words[3]};
  options.memory = 32 << 20;
  options.server = {.max_active = 64, .max_requests_per_client = 1000, .limits = {.max_body = 4096}};
  return serve(options, app);
}
