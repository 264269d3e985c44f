#pragma once

// Containers of the C++ library as messages to isolates.
//
//   using Pages = std::map<std::string, std::vector<std::string>>;
//   auto linker = coir::Isolate::spawn([](coir::IsolatePort& port) {
//     while (auto pages = port.receive<Pages>()) static_cast<void>(port.send(*pages));
//   }, {.queue_bytes = 65536});
//   if (!linker) return complain(linker.error());

#include <cstddef>
#include <cstring>
#include <expected>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <coir/error.h>
#include <coir/message.h>

namespace coir {

// With this header std::string, and std::vector, std::map and std::optional of messages, are messages, to any depth. A
// program that uses it links coir::cxx.
//
// The receiver's copy is allocated on its thread and charged to account::heap. Bytes that no such value has, such as a
// length beyond the message, are `invalid`. Reading them allocates at most some ten times their number. The header
// takes long to parse, for it includes those of the C++ library: include it only where such messages are sent.
//
// Layout: a string is its bytes. An optional is a byte, 0 or 1, and its value. Vectors and maps are their elements, of
// a map each key before its value; an element that is no plain message has its length in front, as a std::size_t.
namespace detail {

inline std::unexpected<Error> invalid_message() noexcept {
  return std::unexpected(Error{ErrorCode::invalid});
}

template <Message T>
std::size_t element_bytes(const T& element) noexcept {
  return MessageBytes<T>::count(element) + (MarshalledMessage<T> ? sizeof(std::size_t) : 0);
}

// put_element writes an element to the front of `into`, which is the rest afterwards.
template <Message T>
void put_element(const T& element, std::span<std::byte>& into) noexcept {
  const std::size_t length = MessageBytes<T>::count(element);
  if constexpr (MarshalledMessage<T>) {
    std::memcpy(into.data(), &length, sizeof length);
    into = into.subspan(sizeof length);
  }
  MessageBytes<T>::write(element, into.first(length));
  into = into.subspan(length);
}

// take_element reads an element from the front of `from`, which is the rest afterwards.
template <Message T>
std::expected<T, Error> take_element(std::span<const std::byte>& from) noexcept {
  std::size_t length = sizeof(T);
  if constexpr (MarshalledMessage<T>) {
    if (from.size() < sizeof length) return invalid_message();
    std::memcpy(&length, from.data(), sizeof length);
    from = from.subspan(sizeof length);
  }
  if (length > from.size()) return invalid_message();
  const std::span<const std::byte> own = from.first(length);
  from = from.subspan(length);
  return MessageBytes<T>::read(own);
}

}  // namespace detail

template <>
struct Marshal<std::string> {
  static std::size_t bytes(const std::string& text) noexcept { return text.size(); }
  static void write(const std::string& text, std::span<std::byte> into) noexcept {
    std::memcpy(into.data(), text.data(), text.size());
  }
  static std::expected<std::string, Error> read(std::span<const std::byte> from) noexcept {
    return std::string(reinterpret_cast<const char*>(from.data()), from.size());
  }
};

template <Message T>
struct Marshal<std::vector<T>> {
  static std::size_t bytes(const std::vector<T>& elements) noexcept {
    std::size_t sum = 0;
    for (const T& element : elements) sum += detail::element_bytes(element);
    return sum;
  }
  static void write(const std::vector<T>& elements, std::span<std::byte> into) noexcept {
    for (const T& element : elements) detail::put_element(element, into);
  }
  // Error: invalid (the bytes hold no vector of these).
  static std::expected<std::vector<T>, Error> read(std::span<const std::byte> from) noexcept {
    std::vector<T> elements;
    if constexpr (!MarshalledMessage<T>) elements.reserve(from.size() / sizeof(T));
    while (!from.empty()) {
      auto element = detail::take_element<T>(from);
      if (!element) return std::unexpected(element.error());
      elements.push_back(std::move(*element));
    }
    return elements;
  }
};

template <Message Key, Message Value>
struct Marshal<std::map<Key, Value>> {
  static std::size_t bytes(const std::map<Key, Value>& pairs) noexcept {
    std::size_t sum = 0;
    for (const auto& [key, value] : pairs) sum += detail::element_bytes(key) + detail::element_bytes(value);
    return sum;
  }
  static void write(const std::map<Key, Value>& pairs, std::span<std::byte> into) noexcept {
    for (const auto& [key, value] : pairs) {
      detail::put_element(key, into);
      detail::put_element(value, into);
    }
  }
  // Error: invalid (the bytes hold no map of these).
  static std::expected<std::map<Key, Value>, Error> read(std::span<const std::byte> from) noexcept {
    std::map<Key, Value> pairs;
    while (!from.empty()) {
      auto key = detail::take_element<Key>(from);
      if (!key) return std::unexpected(key.error());
      auto value = detail::take_element<Value>(from);
      if (!value) return std::unexpected(value.error());
      // Keys were written in order, each once: a pair that finds its place anywhere but at the end is no map's.
      const std::size_t before = pairs.size();
      const auto place = pairs.emplace_hint(pairs.end(), std::move(*key), std::move(*value));
      if (pairs.size() == before || std::next(place) != pairs.end()) return detail::invalid_message();
    }
    return pairs;
  }
};

// An optional of a plain message is plain itself.
template <Message T>
  requires(!PlainMessage<std::optional<T>>)
struct Marshal<std::optional<T>> {
  static std::size_t bytes(const std::optional<T>& value) noexcept {
    return 1 + (value ? detail::MessageBytes<T>::count(*value) : 0);
  }
  static void write(const std::optional<T>& value, std::span<std::byte> into) noexcept {
    into[0] = std::byte{value.has_value()};
    if (value) detail::MessageBytes<T>::write(*value, into.subspan(1));
  }
  static std::expected<std::optional<T>, Error> read(std::span<const std::byte> from) noexcept {
    if (from.empty() || from[0] > std::byte{1}) return detail::invalid_message();
    if (from[0] == std::byte{0}) {
      if (from.size() != 1) return detail::invalid_message();
      return std::optional<T>();
    }
    auto value = detail::MessageBytes<T>::read(from.subspan(1));
    if (!value) return std::unexpected(value.error());
    return std::optional<T>(std::move(*value));
  }
};

}  // namespace coir
