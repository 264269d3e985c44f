#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <coir/error.h>

#include <cstddef>
#include <cstdint>

// The system calls of the sockets (tcp_stream.cpp, tcp_listener.cpp, datagram.cpp), answering -errno.
//
// They are never inlined, because a fiber that parks may continue on another thread, and the C library declares errno's
// address constant: in a loop that both makes system calls and parks, the compiler would keep reading the first
// thread's errno.
namespace coir::kernel {

// connection_error is what the user of a connection is told of a call that has failed by `number`. timed_out is a deadline
// that has passed, and leaves the connection as it was: a peer that has vanished (ETIMEDOUT) is closed.
Error connection_error(int number) noexcept;

ssize_t receive(int fd, void* into, std::size_t size) noexcept;
ssize_t receive_parts(int fd, const iovec* parts, std::size_t count) noexcept;
ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept;
ssize_t send_parts(int fd, const iovec* parts, std::size_t count, int flags) noexcept;
ssize_t send_file(int fd, int file, std::uint64_t offset, std::size_t count) noexcept;
ssize_t read_at(int file, void* into, std::size_t size, std::uint64_t offset) noexcept;
// has_input tells whether bytes wait to be read (the end of the stream is none); is_readable, whether the next read or
// accept has something to tell: bytes, a connection, the end or an error. If the kernel cannot say, it is true.
bool has_input(int fd) noexcept;
bool is_readable(int fd) noexcept;
// peek tells what the next read would answer, and takes nothing: a positive number, 0 for the end, or -errno.
ssize_t peek(int fd) noexcept;
// peek shows what the next read would read; skip takes as much out of the socket, of TCP's without copying it.
ssize_t peek(int fd, void* into, std::size_t size) noexcept;
ssize_t skip(int fd, void* scratch, std::size_t size) noexcept;
// has_hung_up tells whether the peer has ended its side or failed, also behind bytes that nobody has read; has_failed,
// whether it has failed, also behind its end.
bool has_hung_up(int fd) noexcept;
bool has_failed(int fd) noexcept;
// unsent is how many bytes the socket holds that the peer has not acknowledged; -errno where it is not known.
int unsent(int fd) noexcept;
// delivered is how many bytes were written to a TCP connection; 0 where it is not known.
std::uint64_t delivered(int fd) noexcept;
// reset_on_close makes close drop unsent bytes and send the peer a reset instead of a clean end.
void reset_on_close(int fd) noexcept;
int file_status(int file, struct stat& status) noexcept;
// give_up_after has the kernel give a TCP connection up when its peer acknowledges nothing for so long; on another kind
// of socket it does nothing.
void give_up_after(int fd, unsigned milliseconds) noexcept;
// acknowledge_now has the kernel acknowledge what a TCP connection has received, without waiting for bytes to send it with.
void acknowledge_now(int fd) noexcept;
// is_unanswered tells that a TCP connection's peer has acknowledged nothing although it was sent the same again so many times.
bool is_unanswered(int fd, unsigned times) noexcept;
// is_unacknowledged tells that a TCP connection's peer has not acknowledged all that was sent to it.
bool is_unacknowledged(int fd) noexcept;
// probe_peer has the kernel ask the peer of a TCP connection that is silent whether it is there still, and give it up when
// it answers nothing for two minutes; on another kind of socket it does nothing.
void probe_peer(int fd) noexcept;
// These two return a new descriptor: non-blocking, close-on-exec.
int stream_socket(int family) noexcept;
int accept(int fd) noexcept;
int connect(int fd, const sockaddr* to, socklen_t length) noexcept;
// socket_error takes the pending error: 0 or -errno.
int socket_error(int fd) noexcept;
int local_name(int fd, sockaddr_storage& name, socklen_t& length) noexcept;
int peer_name(int fd, sockaddr_storage& name, socklen_t& length) noexcept;

// Datagrams. The socket is non-blocking, close-on-exec.
int datagram_socket(int family) noexcept;
int bind(int fd, const sockaddr* at, socklen_t length) noexcept;
int set_option(int fd, int level, int name, const void* value, socklen_t size) noexcept;
// receive_message returns the whole datagram's length, also where the message takes a part of it.
ssize_t receive_message(int fd, msghdr& message) noexcept;
ssize_t send_message(int fd, const msghdr& message) noexcept;
// These two return how many datagrams were received or sent. All bytes of `messages` that nobody has set are 0.
int receive_messages(int fd, mmsghdr* messages, unsigned count) noexcept;
int send_messages(int fd, mmsghdr* messages, unsigned count) noexcept;

}  // namespace coir::kernel
