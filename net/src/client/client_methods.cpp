// The requests of coir/http/client.h by their methods.
#include <coir/http/client.h>
#include <coir/spinlock.h>

#include <new>

namespace coir::http {
namespace {

using Answer = std::expected<Response, Error>;

Answer ask(Client& client, std::string_view method, std::string_view url, ClientRequest& rest) noexcept {
  rest.method = method;
  rest.url = url;
  return client.request(rest);
}

Answer send(Client& client, std::string_view method, std::string_view url, std::string_view content,
            std::string_view content_type, ClientRequest& rest) noexcept {
  rest.content = content;
  rest.content_type = content_type;
  return ask(client, method, url, rest);
}

// with_shared calls a member of the shared client.
template <class... Arguments>
Answer with_shared(Answer (Client::*call)(Arguments...) noexcept, Arguments... arguments) noexcept {
  Client* const client = Client::shared();
  if (client == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return (client->*call)(arguments...);
}

}  // namespace

Answer Client::get(std::string_view url, ClientRequest rest) noexcept {
  return ask(*this, "GET", url, rest);
}
Answer Client::head(std::string_view url, ClientRequest rest) noexcept {
  return ask(*this, "HEAD", url, rest);
}
Answer Client::del(std::string_view url, ClientRequest rest) noexcept {
  return ask(*this, "DELETE", url, rest);
}
Answer Client::options(std::string_view url, ClientRequest rest) noexcept {
  return ask(*this, "OPTIONS", url, rest);
}
Answer Client::post(std::string_view url, std::string_view content, std::string_view content_type,
                    ClientRequest rest) noexcept {
  return send(*this, "POST", url, content, content_type, rest);
}
Answer Client::put(std::string_view url, std::string_view content, std::string_view content_type,
                   ClientRequest rest) noexcept {
  return send(*this, "PUT", url, content, content_type, rest);
}
Answer Client::patch(std::string_view url, std::string_view content, std::string_view content_type,
                     ClientRequest rest) noexcept {
  return send(*this, "PATCH", url, content, content_type, rest);
}

Answer get(std::string_view url, ClientRequest rest) noexcept {
  return with_shared(&Client::get, url, rest);
}
Answer head(std::string_view url, ClientRequest rest) noexcept {
  return with_shared(&Client::head, url, rest);
}
Answer del(std::string_view url, ClientRequest rest) noexcept {
  return with_shared(&Client::del, url, rest);
}
Answer options(std::string_view url, ClientRequest rest) noexcept {
  return with_shared(&Client::options, url, rest);
}
Answer post(std::string_view url, std::string_view content, std::string_view content_type,
            ClientRequest rest) noexcept {
  return with_shared(&Client::post, url, content, content_type, rest);
}
Answer put(std::string_view url, std::string_view content, std::string_view content_type, ClientRequest rest) noexcept {
  return with_shared(&Client::put, url, content, content_type, rest);
}
Answer patch(std::string_view url, std::string_view content, std::string_view content_type,
             ClientRequest rest) noexcept {
  return with_shared(&Client::patch, url, content, content_type, rest);
}

// The shared client is never destroyed: threads may still use it while the process ends.
Client* Client::shared() noexcept {
  static constinit Atomic<detail::ClientCore*> core{nullptr};
  alignas(Client) static constinit unsigned char place[sizeof(Client)] = {};
  static constinit Spinlock lock;
  // acquire pairs with the release below: whoever sees the core sees the client around it.
  if (core.load(std::memory_order_acquire) == nullptr) {
    auto made = create();
    if (!made) return nullptr;
    const Locked locked(lock);
    if (core.load(std::memory_order_relaxed) == nullptr) {
      ::new (place) Client(std::move(*made));
      core.store(reinterpret_cast<Client*>(place)->core_, std::memory_order_release);
    }
  }
  return std::launder(reinterpret_cast<Client*>(place));
}

}  // namespace coir::http
