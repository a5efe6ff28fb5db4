// The client that the official conformance tool drives in client mode: it does what each scenario asks of a client, on
// version 2 of the TypeScript SDK.   node conformance.mjs URL [login]
// The tool says in the environment which scenario and revision it is. With `login` the client itself logs in; without,
// that is left to the gate that it is led to.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ANSWERS } from './typescript.mjs';
import { Approved } from './login.mjs';

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === '2026-07-28';
const [url, login] = process.argv.slice(2);
// Logins for one request after which the client takes no for an answer.
const LOGINS = 2;

/** Arguments that a tool's schema accepts. */
function filled({ properties = {}, required = [] }) {
  const values = { number: 5, integer: 5, boolean: true, object: {}, array: [] };
  return Object.fromEntries(required.map(name => [name, values[properties[name]?.type] ?? 'given']));
}

/** What a scenario calls: what it names, or every tool that the client makes out. */
function calls(tools) {
  if (context.toolCalls) return context.toolCalls;
  const focal = tools.find(tool => tool.name === 'json_schema_2020_12_tool');
  return tools
    .filter(tool => tool !== focal)
    .map(({ name, inputSchema }) => ({ name, arguments: focal ? { schema: focal.inputSchema } : filled(inputSchema) }));
}

async function connect() {
  const mode = modern ? 'auto' : 'legacy';
  const capabilities = { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} };
  const client = new Client({ name: 'peer', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
  // Defaults are the SDK's to fill in.
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  client.setRequestHandler('sampling/createMessage', ANSWERS['sampling/createMessage']);
  client.setRequestHandler('roots/list', ANSWERS['roots/list']);
  const authProvider = login && scenario.startsWith('auth/') ? new Approved(scenario, context) : undefined;
  for (let attempt = 0; ; attempt++) {
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    try {
      await client.connect(transport);
      return { client, transport, authProvider };
    } catch (error) {
      if (!authProvider?.answer || attempt === LOGINS) throw error;
      await transport.finishAuth(authProvider.taken());
    }
  }
}

/** Does something, and once more for each login that it turns out to need. */
async function allowed({ transport, authProvider }, act) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await act();
    } catch (error) {
      if (!authProvider?.answer || attempt === LOGINS) throw error;
      await transport.finishAuth(authProvider.taken());
    }
  }
}

const connected = await connect();
const { client } = connected;
const { tools } = await allowed(connected, () => client.listTools());
for (const { name, arguments: args } of calls(tools)) {
  try {
    await allowed(connected, () => client.callTool({ name, arguments: args }));
  } catch (error) {
    // Some scenarios answer what this SDK does not take; they are about what was asked, not about the answer.
    if (scenario.startsWith('auth/')) throw error;
    console.error(`${name}: ${error.message}`);
  }
}
if (scenario === 'http-standard-headers') {
  const { resources } = await client.listResources();
  for (const { uri } of resources) await client.readResource({ uri });
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await client.getPrompt({ name });
}
if (scenario === 'auth/authorization-server-migration') {
  await allowed(connected, () => client.listTools({}, { cacheMode: 'refresh' }));
}
await client.close();
