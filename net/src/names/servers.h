#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/net/address.h>

#include <cstdint>
#include <expected>
#include <span>

#include "names/dns_message.h"
#include "names/name_files.h"

namespace coir::names {

// AskingRoom is what one question to the servers needs beside the stack.
struct AskingRoom {
  Name target;                 // where a chain of names has led
  unsigned char packet[1500];  // what comes in; of a longer answer by TCP the beginning
};

// ask_servers asks for the addresses of `name` and adds them to `found`. Returns for how many seconds that holds, also where
// there are none: no such name, or none of its addresses. Errors: temporary, timed_out, cancelled, system, limit, no_memory,
// as resolve.
std::expected<std::uint32_t, Error> ask_servers(const Name& name, const NameServers& servers, AskingRoom& room,
                                                Addresses& found, Deadline deadline) noexcept;

}  // namespace coir::names
