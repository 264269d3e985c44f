#include "mcp_options.h"

#include <coir/http/wire/query.h>

#include <cstddef>

#include "fetch_options.h"

const std::string_view mcp_help =
    "usage: coirctl mcp [OPTION]... URL tools|resources|templates|prompts|info\n"
    "       coirctl mcp [OPTION]... URL call TOOL [JSON]\n"
    "       coirctl mcp [OPTION]... URL prompt NAME [JSON]\n"
    "       coirctl mcp [OPTION]... URL read URI\n"
    "\n"
    "Asks a server of MCP, the Model Context Protocol, such as coird's --mcp, of 2026-07-28 or of the\n"
    "revisions with sessions before it.\n"
    "\n"
    "Standard output has one JSON value a line, as the server has it: each item of a list; of the others the\n"
    "result. JSON are the arguments, an object.\n"
    "\n"
    "      --token-file FILE     the first line of FILE is sent as a Bearer token\n"
    "      --progress            what comes before the answer, one JSON value a line on standard error\n"
    "      --timeout SECONDS     give up after so long (default: 30)\n"
    "      --ca FILE             trust these authorities instead of the system's\n"
    "\n"
    "http_proxy, https_proxy and no_proxy count.\n"
    "\n"
    "The exit status tells what went wrong:\n"
    "\n"
    "   0  nothing\n"
    "   2  the command line\n"
    "   3  the address: malformed, or of another scheme\n"
    "   4  the host: no such name, or no name server answers\n"
    "   5  the connection: refused, unreachable, hung up before a response\n"
    "   6  TLS: the certificate, the handshake, no authorities\n"
    "   7  the time: a deadline has passed\n"
    "   8  the server: it refuses the request; its reason is on standard error\n"
    "   9  the response: malformed, cut off, of no revision that is known\n"
    "  10  the file: the token cannot be read\n"
    "  11  the machine: memory, descriptors\n"
    "  12  the tool: it has run and says that it has failed; its result is printed\n";

namespace {

struct Named {
  std::string_view word;
  AskMcpOptions::Action action;
  bool wants_name;
  bool takes_arguments;
};
constexpr Named kActions[] = {
    {"info", AskMcpOptions::Action::info, false, false},
    {"tools", AskMcpOptions::Action::tools, false, false},
    {"resources", AskMcpOptions::Action::resources, false, false},
    {"templates", AskMcpOptions::Action::templates, false, false},
    {"prompts", AskMcpOptions::Action::prompts, false, false},
    {"call", AskMcpOptions::Action::call, true, true},
    {"read", AskMcpOptions::Action::read, true, false},
    {"prompt", AskMcpOptions::Action::prompt, true, true},
};

}  // namespace

bool AskMcpOptions::read(int count, char** words) noexcept {
  const char* plain[4] = {};
  std::size_t have = 0;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--progress") {
      progress = true;
    } else if (word.starts_with("--")) {
      if (word != "--token-file" && word != "--timeout" && word != "--ca")
        return refuse(word, "no such option (coirctl mcp --help tells)");
      const char* const value = i + 1 < count ? words[++i] : nullptr;
      if (value == nullptr) return refuse(word, "a value is missing");
      if (word == "--timeout") {
        const auto seconds = coir::http::parse_integer(value);
        if (!seconds || *seconds < 1 || *seconds > 1'000'000) return refuse(value, "not a number of seconds");
        timeout_s = static_cast<std::uint32_t>(*seconds);
      } else {
        (word == "--ca" ? authorities : token_file) = value;
      }
    } else if (have == 4) {
      return refuse(word, "a word too many");
    } else {
      plain[have++] = words[i];
    }
  }
  if (have < 2) return refuse("mcp", "an address and what to do are wanted (coirctl mcp --help tells)");
  url = plain[0];
  for (const Named& each : kActions) {
    if (each.word != plain[1]) continue;
    action = each.action;
    name = plain[2];
    arguments = plain[3];
    if (each.wants_name && name == nullptr) return refuse(plain[1], "a name is missing");
    if ((!each.wants_name && name != nullptr) || (!each.takes_arguments && arguments != nullptr))
      return refuse(plain[have - 1], "a word too many");
    return true;
  }
  return refuse(plain[1], "there are tools, resources, templates, prompts, info, call, read and prompt");
}
