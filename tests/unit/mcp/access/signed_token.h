#pragma once

#include <coir/mcp/access.h>

#include <string_view>

// A public key on P-256, a token that python's cryptography has signed by it, and rules that admit the token.
namespace coir::test {

inline constexpr std::string_view kFirstKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyP0B4fYc1yP/0wHxZTd7+Ruo04Je\n"
    "kM66BSRhpR101AuioTKgs/D2F6ObOEmKin0QqqlYRoXTrT9JwJECYTQzqg==\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr std::string_view kGood =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"
    "iJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd3Jpd"
    "GUifQ._fSxLPFAYvG5TEibNir7R_a2AWWdRVEj4ZeolT-1kmG09CwtgS0HOqENqa8lP1uKqNO9idmloRAstCB7YBYntw";

inline constexpr std::string_view kWrite[] = {"read", "write"};
inline constexpr mcp::AccessRules kRules = {
    .issuer = "https://id.example", .audience = "https://board.example/mcp", .scopes = kWrite};

}  // namespace coir::test
