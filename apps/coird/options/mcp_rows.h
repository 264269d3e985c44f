#pragma once

#include "../mcp/options.h"
#include "row.h"
#include "take.h"

// kMcpRows is the section [mcp] of all_rows.
inline constexpr Row kMcpRows[] = {
    row(Section::mcp, Kind::text, "mcp", "PATH",
        "offer tools at PATH, usually /mcp. Only the tools of --mcp-tool are on", take_mcp)
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-tool", "NAME",
        "switch a tool on, up to 16 times: system, memory, fibers, log, time, temperature, leds, read_pin, read_adc, "
        "led, write_pin or fetch",
        take_mcp_tool)
        .of("COIR_MCP")
        .repeats(),
    row(Section::mcp, Kind::file, "mcp-token-file", "FILE",
        "a request needs the first line of FILE as its Bearer token, instead of the credentials of --auth. Only the "
        "owner may be able to read FILE",
        built(COIRD_MCP, take_file<&McpOptions::token_file>))
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-issuer", "URL",
        "a request needs an access token (OAuth 2.1) of this authorization server, instead of the credentials of "
        "--auth",
        take_mcp_issuer)
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-audience", "URL",
        "the name of this server in such a token, such as https://board.example/mcp", take_mcp_audience)
        .of("COIR_MCP"),
    row(Section::mcp, Kind::file, "mcp-jwt-key", "FILE",
        "tokens are JSON Web Tokens signed by ES256; FILE has the issuer's public keys, as PEM",
        built(COIRD_MCP, take_file<&McpOptions::jwt_key>))
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-introspect", "URL",
        "ask the issuer at this address about each token (RFC 7662), instead of --mcp-jwt-key", take_mcp_introspect)
        .of("COIR_MCP"),
    row(Section::mcp, Kind::file, "mcp-client-file", "FILE",
        "credentials for --mcp-introspect: the first line is ID:SECRET. Only the owner may be able to read FILE",
        built(COIRD_MCP, take_file<&McpOptions::client_file>))
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-scope", "SCOPE", "a token must have this scope; up to 8 times", take_mcp_scope)
        .of("COIR_MCP")
        .repeats(),
    row(Section::mcp, Kind::number, "mcp-rate", "N",
        "requests a second for each user with a token, and for all others together; 0: no limit (default: 0)",
        built(COIRD_MCP, take_number<&McpOptions::rate>))
        .within(0, 1'000'000)
        .of("COIR_MCP"),
    row(Section::mcp, Kind::text, "mcp-allow-origin", "ORIGIN",
        "pages of this origin, such as https://agent.example, may send requests", take_mcp_origin)
        .of("COIR_MCP")
        .repeats(),
    row(Section::mcp, Kind::text, "mcp-fetch-allow", "HOST[:PORT]",
        "a host that the tool fetch may read, redirects included: a name, *.example, an address, or * for the public "
        "Internet. An address that is not public must be in the list itself",
        take_mcp_fetch)
        .of("COIR_MCP")
        .repeats(),
    row(Section::mcp, Kind::text, "mcp-mount", "PREFIX=URL|COMMAND",
        "offer another server's tools as PREFIX_NAME, up to 8 times: a server at a URL of http or https, or a "
        "program that uses its standard streams",
        take_mcp_mount)
        .of("COIR_MCP")
        .repeats(),
};
