// Headless Chromium over the DevTools protocol, without a library.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Starts the browser; where it listens. */
export function start(program, profile) {
  const browser = spawn(program, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--remote-debugging-port=0',
    '--disable-background-networking', '--hide-scrollbars', `--user-data-dir=${profile}`, 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  const listens = new Promise((resolve, reject) => {
    createInterface({ input: browser.stderr }).on('line', line => {
      const port = line.match(/DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)/)?.[1];
      if (port) resolve(port);
    });
    browser.on('exit', code => reject(new Error(`${program} ended with ${code}`)));
  });
  return { browser, listens };
}

const WAIT_MS = 15_000;

/** The first page that is the one `wanted`, once it is there. */
async function found(port, wanted) {
  for (const until = Date.now() + WAIT_MS; ; ) {
    const targets = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    const target = targets.find(target => target.type === 'page' && wanted(target));
    if (target) return target;
    if (Date.now() > until) throw new Error(`no such page: there are ${targets.map(target => target.url)}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

/** A page, with commands of the protocol as calls; `told` hears of its events. */
export async function attach(port, told = () => {}, wanted = () => true) {
  const target = await found(port, wanted);
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
  const waiting = new Map();
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params } = JSON.parse(data);
    if (method) told(method, params);
    waiting.get(id)?.(error ? { error } : result);
    waiting.delete(id);
  };
  const send = (method, params = {}) =>
    new Promise(resolve => {
      waiting.set(++last, resolve);
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  const read = async expression => (await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })).result?.value;
  return { id: target.id, send, read };
}
