// The console in headless Chromium, with hands and eyes for it. What the page must never do is written down as it happens.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { attach, start } from './devtools.mjs';
import * as person from './person.mjs';

const [program, profile, pictures] = process.argv.slice(2);
const WAIT_MS = 15_000;
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
export const plan = JSON.parse(Buffer.concat(chunks).toString('utf8'));
const seen = { violations: [], dialogs: [], errors: [], elsewhere: [] };
mkdirSync(pictures, { recursive: true });

// Answers that a page rightly gets now and then, which browsers write down all the same: who logs in wrongly is told so.
const REFUSED = /^Failed to load resource: the server responded with a status of 401/;
let stands = null;

function heard(method, params) {
  if (method === 'Page.javascriptDialogOpening') seen.dialogs.push(params.message);
  if (method === 'Runtime.exceptionThrown') seen.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
  if (method === 'Runtime.consoleAPICalled') seen.errors.push(`console.${params.type}: ${params.args.map(one => one.value ?? one.description)}`);
  if (method === 'Log.entryAdded') {
    const { source, text, url } = params.entry;
    if (source === 'security') seen.violations.push(text);
    else if (!(REFUSED.test(text) && /\/api\/(login|session)$/.test(url))) seen.errors.push(`${text} ${url}`);
  }
  const url = method === 'Network.requestWillBeSent' ? params.request.url : '';
  if (url && !url.startsWith(`${plan.admin}/console`) && !url.startsWith('about:') && !url.startsWith('blob:')) seen.elsewhere.push(url);
  if (method === 'Fetch.requestPaused') stands(params);
}

const { browser, listens } = start(program, profile);
const port = await listens;
const page = await attach(port, heard);
export const { send, read } = page;
export const json = JSON.stringify;

export const end = () => browser.kill();

/** Has the browser tell of everything, and hear what the page's own rules stop and what would have been run. */
export async function listen() {
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`);
  await send('Page.addScriptToEvaluateOnNewDocument', { source: 'window.owned = by => { (window.ran ??= []).push(by); }; addEventListener("securitypolicyviolation", event => { (window.broken ??= []).push(event.violatedDirective + " " + event.blockedURI); });' });
  await size(1280, 820);
  await scheme('light');
}

export async function until(what, expression) {
  const end = Date.now() + WAIT_MS;
  while (Date.now() < end) {
    if (await read(expression)) return;
    await new Promise(resolve => setTimeout(resolve, 40));
  }
  throw new Error(`${what} did not come: ${String(await read('document.body.innerText')).slice(0, 1200)}`);
}

export function same(what, is, wanted) {
  if (json(is) !== json(wanted)) throw new Error(`${what}: ${json(is)}, not ${json(wanted)}`);
}

export const settle = (ms = 150) => new Promise(resolve => setTimeout(resolve, ms));
/** Loads the page anew, and waits until it is another one. */
export async function reload() {
  await read('window.old = true');
  await send('Page.reload', { ignoreCache: true });
  await until('the page anew', '!window.old && document.readyState === "complete"');
}
export const VIEWS = ['live', 'overview', 'approvals', 'upstreams', 'definitions', 'rules', 'quarantine', 'connected'];
export async function go(view) {
  await read(`location.hash = ${json(`#/${view}`)}`);
  await until(view, '!document.querySelector("main").innerText.includes("Loading …") && Boolean(document.querySelector("main h1"))');
  await settle();
}
export const press = async (key, code = key) => {
  for (const type of ['keyDown', 'keyUp']) await send('Input.dispatchKeyEvent', { type, key, code, text: type === 'keyDown' && key.length === 1 ? key : key === 'Enter' && type === 'keyDown' ? '\r' : undefined, windowsVirtualKeyCode: { Enter: 13, Tab: 9, Escape: 27 }[key] });
};
export const click = selector => read(`document.querySelector(${json(selector)}).click()`);
/** With the mouse, as far as the browser can tell: it lets pages open others only then. */
export const clickAt = element => person.press(page, element);
export const type = async (selector, text) => { await read(`document.querySelector(${json(selector)}).focus()`); await send('Input.insertText', { text }); };
/** The button with this word, within what a selector names. */
export const button = (within, word) => `[...document.querySelectorAll(${json(`${within} button`)})].find(one => one.textContent === ${json(word)})`;
export const rows = () => read('document.querySelectorAll("#lines li").length');
export const size = (width, height, mobile = false) => send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: mobile ? 2 : 1, mobile });
export const scheme = value => send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });

export async function picture(name) {
  await settle();
  const { data } = await send('Page.captureScreenshot', { format: 'png' });
  writeFileSync(`${pictures}/${name}.png`, Buffer.from(data, 'base64'));
}

/** Goes through the page that a click opened, filling in what it asks for; the titles that were seen. */
export async function opened(words) {
  const other = await attach(port, () => {}, target => target.id !== page.id && target.url.startsWith('http'));
  const titles = await person.follow(other, words);
  await other.send('Page.close');
  return titles;
}

/** Puts something else in the place of what the gate answers for the page's file `name`, while `what` is done. */
export async function replaced(name, headers, change, what) {
  stands = async ({ requestId, request, responseHeaders }) => {
    const { body, base64Encoded } = await send('Fetch.getResponseBody', { requestId });
    const text = base64Encoded ? Buffer.from(body, 'base64').toString('utf8') : body;
    const changed = new URL(request.url).pathname.endsWith(name) ? change(text) : text;
    await send('Fetch.fulfillRequest', { requestId, responseCode: 200, responseHeaders: headers(responseHeaders), body: Buffer.from(changed).toString('base64') });
  };
  const urlPattern = `${plan.admin}/console`;
  await send('Fetch.enable', { patterns: [urlPattern, `${urlPattern}/${name}`].map(urlPattern => ({ urlPattern, requestStage: 'Response' })) });
  try {
    await what();
  } finally {
    await send('Fetch.disable');
    for (const list of Object.values(seen)) list.length = 0;
  }
}

let id = 0;
let session;
let bearer;
/** A call of the agent's, whose token says that its user is called something that would run. */
export async function call(method, params, upstream = 'hostile') {
  bearer ??= await (await fetch(`${plan.issuer}/token`)).text();
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${bearer}` };
  if (params._meta) Object.assign(headers, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': params.name });
  else if (session && upstream === 'hostile') headers['mcp-session-id'] = session;
  const answer = await fetch(`${plan.agents}/mcp/${upstream}`, { method: 'POST', headers, body: json({ jsonrpc: '2.0', id: ++id, method, params }) });
  if (upstream === 'hostile') session ??= answer.headers.get('mcp-session-id') ?? undefined;
  return answer.text();
}
export const tool = (name, args = {}, upstream) => call('tools/call', { name, arguments: args }, upstream);
export const link = () => execFileSync(plan.gate, ['console', '--no-browser', '--config', plan.config], { encoding: 'utf8' }).trim();

/** Everything that is on the page came from the page's own program. */
export async function clean(where) {
  same(`${where}: nothing ran`, await read('window.ran ?? []'), []);
  const planted = await read('[...document.querySelectorAll("script, style, iframe, object, embed, img, link, .planted, [onerror], [onload], a[href^=\'javascript\']")].map(each => each.outerHTML).filter(html => !/^<(script type="module" src="\\/console\\/main.js"|link rel="(icon|stylesheet)" href="\\/console|img src="\\/console\\/icon.svg")/.test(html))');
  same(`${where}: nothing was planted`, planted, []);
  const all = [seen.dialogs, seen.violations, await read('window.broken ?? []'), seen.errors, seen.elsewhere].map(list => list.splice(0));
  same(`${where}: no dialog, no violation, no error, no request elsewhere`, all, [[], [], [], [], []]);
}

/** Texts that stand out too little from what they stand on (WCAG 2.2, 1.4.3: 4.5 to 1). */
export const faint = () => read(`(() => {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const over = (colour, ground) => {
    pen.fillStyle = 'rgb(' + ground + ')'; pen.fillRect(0, 0, 1, 1);
    pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = colour => { const [r, g, b] = colour.map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = one => one ? over(getComputedStyle(one).backgroundColor, ground(one.parentElement)) : [255, 255, 255];
  const out = new Set();
  for (const one of document.querySelectorAll('body *')) {
    const words = [...one.childNodes].filter(node => node.nodeType === 3).map(node => node.data).join('').trim();
    if (!words || !one.checkVisibility({ opacityProperty: true }) || one.closest('svg, :disabled, .unseen')) continue;
    const on = ground(one), style = getComputedStyle(one), [a, b] = [light(over(style.color, on)), light(on)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.add(one.tagName + '.' + one.className + ' ' + ratio.toFixed(2) + ' ' + words.slice(0, 30));
  }
  return [...out];
})()`);
