// An agent on version 2 of the TypeScript SDK; plan and account as in python_sdk.py.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERS, CAPABILITIES, Notebook, follow, readPlan } from './typescript.mjs';

function connect({ http, sse, stdio }) {
  if (http) return new StreamableHTTPClientTransport(new URL(http));
  if (sse) return new SSEClientTransport(new URL(sse));
  return new StdioClientTransport({ command: stdio[0], args: stdio.slice(1), stderr: 'inherit' });
}

const plan = await readPlan();
const notebook = new Notebook();
notebook.restart();
const mode = plan.era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
const client = new Client({ name: 'peer', version: '1.0.0' }, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
for (const method of Object.keys(ANSWERS)) {
  client.setRequestHandler(method, request => {
    notebook.saw(method, request.params ?? {});
    return ANSWERS[method](request.params);
  });
}
client.setNotificationHandler('notifications/message', note => notebook.saw(note.method, note.params));
await client.connect(connect(plan.target));
await follow(plan, client, notebook, () => client.getNegotiatedProtocolVersion());
