#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <expected>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <coir/detail/construct.h>
#include <coir/error.h>

namespace coir {

// PlainMessage is a value that is whole in its own bytes. Pointers, references and views of another's memory are not:
// the other side shares none. What hides one in a member is for its author to see.
template <class T>
concept PlainMessage = std::is_object_v<T> && std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
                       !std::is_array_v<T> && !std::is_pointer_v<T> && !std::is_null_pointer_v<T> &&
                       !std::is_member_pointer_v<T> && !std::ranges::enable_borrowed_range<T>;

// MarshalledMessage is a type that says itself how it is written to bytes and read from them, on the other side by
// another thread. The three may neither park nor call the object that the message goes through.
//
//   struct Line {
//     std::string text;
//     std::size_t marshalled_bytes() const noexcept { return text.size(); }
//     void marshal(std::span<std::byte> into) const noexcept { memcpy(into.data(), text.data(), text.size()); }
//     static std::expected<Line, coir::Error> unmarshal(std::span<const std::byte> from) noexcept;
//   };
template <class T>
concept MarshalledMessage = std::is_nothrow_move_constructible_v<T> &&
                            requires(const T& message, std::span<std::byte> into, std::span<const std::byte> from) {
                              { message.marshalled_bytes() } noexcept -> std::convertible_to<std::size_t>;
                              { message.marshal(into) } noexcept -> std::same_as<void>;
                              { T::unmarshal(from) } noexcept -> std::same_as<std::expected<T, Error>>;
                            };

// Message is what crosses from one run to another: only bytes do.
template <class T>
concept Message = PlainMessage<T> || MarshalledMessage<T>;

namespace detail {

// MessageType is how code that does not know a message's type handles it; its address is the type's name.
struct MessageType {
  std::size_t (*bytes)(const void* message) noexcept;
  void (*write)(const void* message, std::span<std::byte> into) noexcept;
  // read constructs the message at `into`, or returns an error and constructs nothing.
  std::expected<void, Error> (*read)(void* into, std::span<const std::byte> from) noexcept;
};

template <Message T>
struct MessageCode {
  static std::size_t bytes(const void* message) noexcept {
    if constexpr (MarshalledMessage<T>) {
      return static_cast<const T*>(message)->marshalled_bytes();
    } else {
      return sizeof(T);
    }
  }
  static void write(const void* message, std::span<std::byte> into) noexcept {
    if constexpr (MarshalledMessage<T>) {
      static_cast<const T*>(message)->marshal(into);
    } else {
      std::memcpy(into.data(), message, sizeof(T));
    }
  }
  static std::expected<void, Error> read(void* into, std::span<const std::byte> from) noexcept {
    if constexpr (MarshalledMessage<T>) {
      std::expected<T, Error> made = T::unmarshal(from);
      if (!made) return std::unexpected(made.error());
      std::construct_at(static_cast<T*>(into), std::move(*made));
    } else {
      std::memcpy(into, from.data(), sizeof(T));
    }
    return {};
  }
};

template <Message T>
inline constexpr MessageType kMessageType{&MessageCode<T>::bytes, &MessageCode<T>::write, &MessageCode<T>::read};

// MessageRoom is room for a message that its reader constructs.
template <class T>
union MessageRoom {
  T value;
  MessageRoom() noexcept {}
  ~MessageRoom() {}
};

}  // namespace detail

}  // namespace coir
