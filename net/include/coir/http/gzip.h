#pragma once

// Compressed content, for a client.
//
//   auto client = http::Client::create({.coding = &http::kGzip, .max_decoded = 256 * 1024});
//   if (!client) return complain(client.error());

#include <coir/config.h>

#if !COIR_GZIP
#error "this build of coir does not read gzip: configure it with -DCOIR_GZIP=ON"
#endif

#include <coir/http/client.h>
#include <coir/http/detail/content_coding.h>

namespace coir::http {

// kGzip has a client ask for content that is compressed by gzip, and read it decompressed.
//
// Only a program that names it carries zlib, 12 KB of it. A response that is read takes 7 KB of account::http, and 32 KB more if
// it does not decompress in one piece.
extern const ContentCoding kGzip;

}  // namespace coir::http
