// An agent on version 1 of the TypeScript SDK; plan and account as in python_sdk.py.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, CAPABILITIES, Notebook, follow, readPlan } from './typescript.mjs';

function connect({ http, sse, stdio }) {
  if (http) return new StreamableHTTPClientTransport(new URL(http));
  if (sse) return new SSEClientTransport(new URL(sse));
  return new StdioClientTransport({ command: stdio[0], args: stdio.slice(1), stderr: 'inherit' });
}

const plan = await readPlan();
const notebook = new Notebook();
notebook.restart();
const client = new Client({ name: 'peer', version: '1.0.0' }, { capabilities: CAPABILITIES });
client.legacyShape = true;
for (const schema of [CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema]) {
  client.setRequestHandler(schema, request => {
    notebook.saw(request.method, request.params ?? {});
    return ANSWERS[request.method](request.params);
  });
}
client.setNotificationHandler(LoggingMessageNotificationSchema, note => notebook.saw(note.method, note.params));
const transport = connect(plan.target);
let version;
const setVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = chosen => {
  version = chosen;
  setVersion?.(chosen);
};
await client.connect(transport);
await follow(plan, client, notebook, () => version);
