#pragma once

#include <coir/tcp.h>

#include <string_view>

namespace coir::http {

class Engine;

// is_own_host tells whether a request's Host, `authority`, is what this machine is called by: its host name, that with
// ".local", localhost, an address of one of its interfaces, a name in a certificate of the server's, or one of
// ServerOptions::allow_hosts. All of it is without case, port and the dot at a name's end. A page whose own name was
// changed to lead here (DNS rebinding) still says that name; a client by a Unix socket, or of HTTP/1.0 and without
// Host, is no browser, and may say anything.
//
// Costs a system call or two: ask it only where the answer matters.
bool is_own_host(std::string_view authority, const Engine& engine, const TcpStream& by) noexcept;

}  // namespace coir::http
