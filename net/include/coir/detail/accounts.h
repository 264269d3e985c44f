#pragma once

#include <coir/ledger.h>

// The accounts that a server charges.
namespace coir::account {

extern Account connections;  // what is kept of connections, and what the kernel holds for them
extern Account http;         // requests being served
extern Account buffers;      // buffers of whatever reads and writes, kept while bytes move
extern Account files;        // content of files kept in memory
extern Account streams;      // histories of event hubs, and what else streams hold

}  // namespace coir::account
