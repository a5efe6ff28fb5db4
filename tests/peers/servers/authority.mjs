// An MCP server behind an authorization server that others wrote: `oidc-provider`, which is certified by the OpenID
// Foundation.   node authority.mjs PORT SECONDS_OF_ACCESS_TOKENS
// People log in on its own pages, with any name and password. What becomes of tokens is told on standard output, a JSON
// object a line.
import http from 'node:http';
import Provider from 'oidc-provider';

const [port, seconds] = process.argv.slice(2).map(Number);
const issuer = `http://127.0.0.1:${port}`;
const resource = `${issuer}/mcp`;
const tell = (event, more = {}) => console.log(JSON.stringify({ event, ...more }));

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', 'tools'],
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  cookies: { keys: [crypto.randomUUID()] },
  ttl: { RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600 },
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new Error(`no such resource: ${indicator}`);
        return { scope: 'tools', accessTokenTTL: seconds, accessTokenFormat: 'opaque' };
      },
    },
  },
});
provider.on('grant.success', ctx => tell('granted', { grant: ctx.oidc.params.grant_type, resource: ctx.oidc.params.resource }));
provider.on('grant.error', (ctx, error) => tell('refused', { grant: ctx.oidc.params?.grant_type, error: error.error }));
provider.on('registration_create.success', (_, client) => tell('registered', { type: client.applicationType }));
provider.on('refresh_token.consumed', () => tell('rotated'));
provider.on('refresh_token.destroyed', () => tell('refresh token gone'));
provider.on('authorization.error', (_, error) => tell('authorization refused', { error: error.error }));
provider.on('server_error', (_, error) => tell('server error', { error: String(error.stack) }));

const METADATA = {
  resource,
  authorization_servers: [issuer],
  scopes_supported: ['tools'],
  bearer_methods_supported: ['header'],
};
const TOOL = { name: 'whoami', description: 'Says who logged in.', inputSchema: { type: 'object' } };

/** The server behind it, of the modern era: no session, one answer for each request. */
async function mcp(request, response) {
  const token = request.headers.authorization?.match(/^Bearer (.+)$/)?.[1];
  const known = token && (await provider.AccessToken.find(token));
  if (!known || !known.isValid || known.aud !== resource) {
    const error = token ? 'error="invalid_token", ' : '';
    response.setHeader('www-authenticate', `Bearer ${error}resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"`);
    return void response.writeHead(401).end();
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  const { id, method } = JSON.parse(body);
  const results = {
    'tools/list': { tools: [TOOL], ttlMs: 0, cacheScope: 'private' },
    'tools/call': { content: [{ type: 'text', text: known.accountId }] },
  };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } }));
}

const answer = provider.callback();
http
  .createServer((request, response) => {
    const path = new URL(request.url, issuer).pathname;
    if (path === '/mcp') return void mcp(request, response);
    if (path === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json');
      return void response.end(JSON.stringify(METADATA));
    }
    answer(request, response);
  })
  .listen(port, '127.0.0.1');
