// A server with the names that the conformance suite looks for, in every revision:
//   node servers/fixture.mjs [PORT]     HTTP on 127.0.0.1, prints its URL
//   node servers/fixture.mjs --stdio    over standard input and output
//   node servers/fixture.mjs --sse PORT HTTP+SSE of 2024-11-05 on 127.0.0.1, at /sse
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import {
  NodeStreamableHTTPServerTransport, localhostHostValidation, localhostOriginValidation, toNodeHandler, toWebRequest,
} from '@modelcontextprotocol/node';
import {
  McpServer, ProtocolError, ResourceNotFoundError, createMcpHandler, createRequestStateCodec, fromJsonSchema, isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
// Only the older SDK has this transport.
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { PROMPTS, RESOURCES, getPrompt, readResource } from './fixture-content.mjs';
import { TOOLS } from './fixture-tools.mjs';

const seal = createRequestStateCodec({ key: randomBytes(32) });
const EMPTY = { type: 'object', properties: {} };
const CACHED = { ttlMs: 60_000, cacheScope: 'public' };
const CACHEABLE = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read', 'server/discover'];

function build(hooks) {
  const mcp = new McpServer({ name: 'lychgate-fixture', version: '1.0.0' }, {
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      completions: {},
      logging: {},
    },
    instructions: 'A server for tests.',
    cacheHints: Object.fromEntries(CACHEABLE.map(method => [method, CACHED])),
    requestState: { verify: seal.verify },
  });
  for (const [name, tool] of Object.entries(TOOLS)) {
    const inputSchema = fromJsonSchema(tool.inputSchema ?? EMPTY);
    mcp.registerTool(name, { description: tool.description, inputSchema }, () => fail(new Error('answered below')));
  }
  const handle = (method, answer) => mcp.server.setRequestHandler(method, answer);
  // In place of the SDK's own, which turns every error into a result: a missing capability has to stay an error.
  handle('tools/call', async (request, ctx) => {
    const tool = TOOLS[request.params.name] ?? fail(new ProtocolError(-32602, `no tool ${request.params.name}`));
    return tool.run(request.params.arguments ?? {}, ctx, { ...hooks(mcp), seal: seal.mint });
  });
  handle('prompts/list', () => ({ prompts: PROMPTS }));
  handle('prompts/get', (request, ctx) => getPrompt(request.params, ctx));
  handle('resources/list', () => ({ resources: RESOURCES }));
  handle('resources/templates/list', () => ({
    resourceTemplates: [{
      uriTemplate: 'test://template/{id}/data',
      name: 'template',
      description: 'Data by number',
      mimeType: 'application/json',
    }],
  }));
  handle('resources/read', request => readResource(request.params.uri) ?? fail(new ResourceNotFoundError(request.params.uri)));
  handle('resources/subscribe', () => ({}));
  handle('resources/unsubscribe', () => ({}));
  handle('completion/complete', request => {
    const values = ['paris', 'park', 'party', 'test'].filter(value => value.startsWith(request.params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return mcp;
}

function fail(error) {
  throw error;
}

/** Events of one session, so that a client that lost its stream gets the rest. */
class Events {
  #events = [];
  async storeEvent(streamId, message) {
    this.#events.push({ streamId, message });
    return `${streamId}_${this.#events.length}`;
  }
  async replayEventsAfter(lastEventId, { send }) {
    const cut = lastEventId.lastIndexOf('_');
    const streamId = lastEventId.slice(0, cut);
    for (let at = Number(lastEventId.slice(cut + 1)); at < this.#events.length; at++) {
      const event = this.#events[at];
      const primes = Object.keys(event.message).length === 0;
      if (event.streamId === streamId && !primes) await send(`${streamId}_${at + 1}`, event.message);
    }
    return streamId;
  }
}

const changed = mcp => ({
  toolsChanged: () => mcp.server.sendToolListChanged(),
  promptsChanged: () => mcp.server.sendPromptListChanged(),
});
const modern = createMcpHandler(() => build(() => modern.notify), { legacy: 'reject' });
const serveModern = toNodeHandler(modern);
const sessions = new Map();

/** One transport and one server for each session of the revisions that have sessions. */
async function serveLegacy(request, response, body) {
  const id = request.headers['mcp-session-id'];
  if (id !== undefined) {
    const known = sessions.get(id);
    if (!known) return refuse(response, 404, 'Session not found');
    return known.handleRequest(request, response, body);
  }
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 200,
    onsessioninitialized: session => void sessions.set(session, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await build(changed).connect(transport);
  return transport.handleRequest(request, response, body);
}

function refuse(response, status, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }));
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const raw = Buffer.concat(chunks).toString('utf8');
  try {
    return { parsed: JSON.parse(raw) };
  } catch {
    return { broken: raw.length > 0 };
  }
}

const validHost = localhostHostValidation();
const validOrigin = localhostOriginValidation();

async function serve(request, response) {
  if (!validHost(request, response) || !validOrigin(request, response)) return;
  const body = await bodyOf(request);
  if (body.broken) {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32700, message: 'Parse error' }, id: null }));
    return;
  }
  const legacy = await isLegacyRequest(await toWebRequest(request, body.parsed), body.parsed);
  await (legacy ? serveLegacy : serveModern)(request, response, body.parsed);
}

const streams = new Map();

/** One stream and one server for each GET, and the messages that are posted to it. */
async function serveSse(request, response) {
  if (request.method === 'GET') {
    const transport = new SSEServerTransport('/messages', response);
    streams.set(transport.sessionId, transport);
    await build(changed).connect(transport);
    response.on('close', () => streams.delete(transport.sessionId));
    return;
  }
  const known = streams.get(new URL(request.url, 'http://localhost').searchParams.get('sessionId'));
  if (!known) return refuse(response, 404, 'Session not found');
  await known.handlePostMessage(request, response);
}

function listen(serve, port, path) {
  const http = createServer((request, response) => {
    serve(request, response).catch(error => {
      console.error(error);
      if (!response.headersSent) refuse(response, 500, 'Internal error');
    });
  });
  http.listen(Number(port ?? 0), '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}${path}`));
}

switch (process.argv[2]) {
  case '--stdio': serveStdio(() => build(changed)); break;
  case '--sse': listen(serveSse, process.argv[3], '/sse'); break;
  default: listen(serve, process.argv[2], '/mcp');
}
