// Requests to the gate. A session is authenticated by an HttpOnly cookie, and by a proof that only pages of this
// origin know.

const KEY = 'lychgate-console-proof';
let ended = () => {};

/** Sets the handler for the end of the session. */
export const onEnd = what => { ended = what; };

export const hasProof = () => Boolean(localStorage.getItem(KEY));

function headers(byItself) {
  const all = { 'x-lychgate-console': localStorage.getItem(KEY) ?? '' };
  if (byItself) all['x-lychgate-by-itself'] = '1';
  return all;
}

/** Sends a request; throws an Error with the gate's message. `byItself`: automatic, so it does not keep the session open. */
export async function ask(path, { method = 'GET', data, byItself = false } = {}) {
  const answer = await fetch(`/console/api/${path}`, {
    method, headers: { ...headers(byItself), ...(data ? { 'content-type': 'application/json' } : {}) },
    body: data ? JSON.stringify(data) : undefined, credentials: 'same-origin', cache: 'no-store',
  });
  if (answer.status === 401 && path !== 'login') {
    ended();
    throw new Error('the session has ended');
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said?.error ?? `the gate responded with status ${answer.status}`);
  return said;
}

export async function logIn(shown) {
  const { proof } = await ask('login', { method: 'POST', data: shown });
  localStorage.setItem(KEY, proof);
}

export async function logOut() {
  await ask('logout', { method: 'POST' }).catch(() => {});
  localStorage.removeItem(KEY);
}

export const forget = () => localStorage.removeItem(KEY);

/** Reads the stream until it ends or `signal` aborts; passes its lines to `receive`. */
export async function listen(back, receive, signal) {
  const answer = await fetch(`/console/api/stream?back=${back}`, { headers: headers(true), signal, credentials: 'same-origin', cache: 'no-store' });
  if (answer.status === 401) {
    ended();
    return;
  }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({})))?.error ?? `the gate responded with status ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    receive(lines.filter(Boolean).map(line => JSON.parse(line)));
  }
}
