#pragma once

// A type that can be sent to an isolate.
//
//   struct Line {
//     std::string text;
//     std::size_t marshalled_bytes() const noexcept { return text.size(); }
//     void marshal(std::span<std::byte> into) const noexcept { memcpy(into.data(), text.data(), text.size()); }
//     static std::expected<Line, coir::Error> unmarshal(std::span<const std::byte> from) noexcept {
//       return Line{std::string(reinterpret_cast<const char*>(from.data()), from.size())};
//     }
//   };

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

// PlainMessage is a type whose values are whole in their own bytes. Pointers, references and views are not plain: the
// memory behind them is not shared with the other side. A pointer hidden in a member is not detected: do not have one.
template <class T>
concept PlainMessage = std::is_object_v<T> && std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
                       !std::is_array_v<T> && !std::is_pointer_v<T> && !std::is_null_pointer_v<T> &&
                       !std::is_member_pointer_v<T> && !std::ranges::enable_borrowed_range<T>;

// SelfMarshalling is a type with members that write it to bytes, and read it from them on the thread of the other side.
// marshal gets exactly marshalled_bytes() bytes, unmarshal exactly the bytes that marshal wrote. None of the three may
// park, or call the object that the message goes through.
//
// A program with std::string in it links coir::cxx. coir/message_containers.h marshals std::string itself, and more.
template <class T>
concept SelfMarshalling = requires(const T& message, std::span<std::byte> into, std::span<const std::byte> from) {
  { message.marshalled_bytes() } noexcept -> std::convertible_to<std::size_t>;
  { message.marshal(into) } noexcept -> std::same_as<void>;
  { T::unmarshal(from) } noexcept -> std::same_as<std::expected<T, Error>>;
};

// Marshal<T> has the three functions, static, for a type T that cannot have them as members:
//
//   template <>
//   struct coir::Marshal<Person> {
//     static std::size_t bytes(const Person& person) noexcept;
//     static void write(const Person& person, std::span<std::byte> into) noexcept;
//     static std::expected<Person, coir::Error> read(std::span<const std::byte> from) noexcept;
//   };
template <class T>
struct Marshal;

template <class T>
concept MarshalledElsewhere = requires(const T& message, std::span<std::byte> into, std::span<const std::byte> from) {
  { Marshal<T>::bytes(message) } noexcept -> std::convertible_to<std::size_t>;
  { Marshal<T>::write(message, into) } noexcept -> std::same_as<void>;
  { Marshal<T>::read(from) } noexcept -> std::same_as<std::expected<T, Error>>;
};

template <class T>
concept MarshalledMessage = std::is_nothrow_move_constructible_v<T> && (SelfMarshalling<T> || MarshalledElsewhere<T>);

// Message is a type whose values may cross from one run to another: by their own bytes, or marshalled.
template <class T>
concept Message = PlainMessage<T> || MarshalledMessage<T>;

namespace detail {

// MessageRoom is room for a message that its reader constructs.
template <class T>
union MessageRoom {
  T value;
  MessageRoom() noexcept {}
  ~MessageRoom() {}
};

// MessageBytes writes and reads any message. read returns `invalid` for bytes that no such message has.
template <Message T>
struct MessageBytes {
  static std::size_t count(const T& message) noexcept {
    if constexpr (SelfMarshalling<T>) {
      return message.marshalled_bytes();
    } else if constexpr (MarshalledElsewhere<T>) {
      return Marshal<T>::bytes(message);
    } else {
      return sizeof(T);
    }
  }
  static void write(const T& message, std::span<std::byte> into) noexcept {
    if constexpr (SelfMarshalling<T>) {
      message.marshal(into);
    } else if constexpr (MarshalledElsewhere<T>) {
      Marshal<T>::write(message, into);
    } else {
      std::memcpy(into.data(), std::addressof(message), sizeof(T));
    }
  }
  static std::expected<T, Error> read(std::span<const std::byte> from) noexcept {
    if constexpr (SelfMarshalling<T>) {
      return T::unmarshal(from);
    } else if constexpr (MarshalledElsewhere<T>) {
      return Marshal<T>::read(from);
    } else {
      if (from.size() != sizeof(T)) return std::unexpected(Error{ErrorCode::invalid});
      if constexpr (std::is_same_v<T, bool>) {
        if (from[0] > std::byte{1}) return std::unexpected(Error{ErrorCode::invalid});
      }
      MessageRoom<T> room;
      std::memcpy(std::addressof(room.value), from.data(), sizeof(T));
      return room.value;
    }
  }
};

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
    return MessageBytes<T>::count(*static_cast<const T*>(message));
  }
  static void write(const void* message, std::span<std::byte> into) noexcept {
    MessageBytes<T>::write(*static_cast<const T*>(message), into);
  }
  static std::expected<void, Error> read(void* into, std::span<const std::byte> from) noexcept {
    std::expected<T, Error> made = MessageBytes<T>::read(from);
    if (!made) return std::unexpected(made.error());
    std::construct_at(static_cast<T*>(into), std::move(*made));
    return {};
  }
};

template <Message T>
inline constexpr MessageType kMessageType{&MessageCode<T>::bytes, &MessageCode<T>::write, &MessageCode<T>::read};

}  // namespace detail

}  // namespace coir
