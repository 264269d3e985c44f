// The server of tests/bench/mcp_server.cpp by the TypeScript SDK, without sessions, as its examples have it: each request has a
// transport and a server of its own. Run where node_modules has @modelcontextprotocol/sdk. mcp_server.mjs PORT
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const find = createRequire(pathToFileURL(process.cwd() + "/").href);
const load = (name) => import(pathToFileURL(find.resolve("@modelcontextprotocol/sdk/" + name)).href);
const { Server } = await load("server/index.js");
const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
const { CallToolRequestSchema } = await load("types.js");

createServer(async (request, response) => {
  const server = new Server({ name: "bench", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: String(params.arguments.a + params.arguments.b) }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}).listen(Number(process.argv[2]), "127.0.0.1");
