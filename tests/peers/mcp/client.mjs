// An official TypeScript client of MCP against a server with the tools of mcp_peer: `client.mjs client|sdk URL FOLDER [PREFIX]`.
// `client` speaks 2026-07-28 and `sdk` 2025-11-25. PREFIX stands before the tools' names. It prints a line for each promise, "restart" where the server is to be started anew, and goes
// on at a line of standard input.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [which, url, folder, prefix = ''] = process.argv.slice(2);
const from = createRequire(folder + '/');
const load = (name) => import(pathToFileURL(from.resolve(name)).href);
const modern = which === 'client';
const { Client, StreamableHTTPClientTransport } = modern
  ? await load('@modelcontextprotocol/client')
  : { ...(await load('@modelcontextprotocol/sdk/client/index.js')), ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')) };

let failed = false;
function says(good, text, more = '') {
  console.log(`${good ? 'ok' : 'not ok'} - ${which}: ${text}`);
  if (!good) console.log(`#   ${more}`), (failed = true);
}
async function connected() {
  const client = new Client({ name: 'peer', version: '1' }, modern ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}
// call takes the options where both clients have them.
const call = (client, name, options) => {
  const params = { name: prefix + name, arguments: {} };
  return modern ? client.callTool(params, options) : client.callTool(params, undefined, options);
};
const text = (answer) => answer.content?.[0]?.text;

try {
  let client = await connected();
  const revision = modern ? client.getNegotiatedProtocolVersion?.() : client.transport?.protocolVersion;
  says(revision === (modern ? '2026-07-28' : '2025-11-25'), 'it speaks its revision', `${revision}`);
  const { tools } = await client.listTools();
  says(tools.some((tool) => tool.name === `${prefix}test_simple_text`), 'tools are listed', JSON.stringify(tools));
  says((await client.listPrompts()).prompts.length > 0, 'prompts are listed');
  says((await client.readResource({ uri: 'test://static-text' })).contents.length === 1, 'a resource is read');
  const answer = await call(client, 'test_simple_text');
  says(/simple text/.test(text(answer)), 'a tool is called', JSON.stringify(answer));
  says((await call(client, 'test_error_handling')).isError === true, 'a tool that fails says so');

  const progress = [];
  await call(client, 'test_tool_with_progress', { onprogress: (each) => progress.push(each.progress) });
  says(progress.join() === '0,50,100', 'progress comes as it is made', progress.join());

  const gone = new AbortController();
  let error;
  const held = call(client, 'test_never_ends', { signal: gone.signal, onprogress: () => gone.abort() }).catch((each) => (error = each));
  setTimeout(() => gone.abort(), 200); // where the tool tells nothing before
  await held;
  says(error !== undefined && gone.signal.aborted, 'a call is cancelled in the middle', `${error}`);
  says(/simple text/.test(text(await call(client, 'test_simple_text'))), 'and the client is of use afterwards');

  const again = await call(client, 'test_reconnection').catch((each) => each);
  says(Array.isArray(again.content), 'a stream that its server closes is taken up again', `${again}`);

  console.log('restart');
  await once(process.stdin, 'data');
  // A legacy session is gone: 404, and its client begins anew. Nothing is kept of a modern one.
  let after = await call(client, 'test_simple_text').catch((each) => each);
  if (!modern) {
    says(/404|[Ss]ession/.test(`${after}`), 'a restarted server knows the session no more, and says so', `${after}`);
    client = await connected();
    after = await call(client, 'test_simple_text');
  }
  says(/simple text/.test(text(after)), 'a server that was restarted under way is called', `${after}`);
  await client.close();
} catch (error) {
  says(false, 'everything is answered', error.stack);
}
process.exit(failed ? 1 : 0);
