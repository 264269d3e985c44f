-- wrk's request of scripts/bench mcp: one call of the tool that adds. An answer that is not the sum ends the run.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
local version, meta = os.getenv("MCP_VERSION"), ""
wrk.headers["MCP-Protocol-Version"] = version
if version == "2026-07-28" then
  wrk.headers["Mcp-Method"] = "tools/call"
  wrk.headers["Mcp-Name"] = "add"
  meta = ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
end
wrk.body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}' .. meta .. "}}"
local wrong = 0
response = function(status, headers, body)
  if status ~= 200 or not string.find(body, '"5"', 1, true) then
    if wrong == 0 then print("wrong: " .. status .. " " .. body) end
    wrong = wrong + 1
  end
end
