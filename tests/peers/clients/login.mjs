// How the conformance client logs in by itself, when no gate does it: the server approves at once, by a redirect.

/** An `OAuthClientProvider` of the SDK that remembers everything for as long as it lives. */
export class Approved {
  redirectUrl = 'http://localhost:3000/callback';
  clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  clientMetadata = {
    client_name: 'peer',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  };

  constructor(scenario, context) {
    if (scenario === 'auth/pre-registration') {
      this.client = { client_id: context.client_id, client_secret: context.client_secret };
    }
  }
  state() {
    return crypto.randomUUID();
  }
  clientInformation() {
    return this.client;
  }
  saveClientInformation(client) {
    this.client = client;
  }
  tokens() {
    return this.granted;
  }
  saveTokens(tokens) {
    this.granted = tokens;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  invalidateCredentials(scope) {
    if (scope !== 'tokens') this.client = undefined;
    this.granted = undefined;
  }
  /** Goes where a person would be sent, and keeps what is brought back. */
  async redirectToAuthorization(url) {
    const response = await fetch(url, { redirect: 'manual' });
    this.answer = new URL(response.headers.get('location')).searchParams;
  }
  taken() {
    const answer = this.answer;
    this.answer = undefined;
    return answer;
  }
}
