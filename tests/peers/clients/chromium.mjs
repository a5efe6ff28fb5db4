// A person at Chromium: opens a link, fills in what the pages ask for, and presses their first button, until a page
// asks nothing more.   node chromium.mjs PROGRAM PROFILE URL < {"name": "…", "password": "…"}
// Prints the titles of the pages, a JSON list. Driven over the DevTools protocol, without a library.
import { attach, start } from './devtools.mjs';

const [program, profile, url] = process.argv.slice(2);
const PAGES = 8;
const WAIT_MS = 20_000;

/** Waits until a page has loaded that is not the one before. */
async function loaded({ read }, before) {
  const until = Date.now() + WAIT_MS;
  while (Date.now() < until) {
    // In the middle of a navigation there is nothing to read.
    const now = await read('document.readyState === "complete" ? performance.timeOrigin + " " + location.href : ""');
    if (now && now !== before && !now.endsWith('about:blank')) return now;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  throw new Error(`no page came after ${before}: ${await read('document.body.innerText')}`);
}

/** Types into every field that there is a word for, and clicks; false if the page asks nothing. */
async function goOn({ send, read }, words) {
  if (!(await read('document.forms.length > 0'))) return false;
  for (const [name, word] of Object.entries(words)) {
    const there = await read(`(field => field && (field.focus(), true))(document.querySelector('input[name="${name}"]'))`);
    if (there) await send('Input.insertText', { text: word });
  }
  const button = 'document.forms[0].querySelector("button, input[type=submit]")';
  // A click is at a place on the screen.
  await read(`${button}.scrollIntoView({ block: 'center' })`);
  const { x, y } = await read(
    `(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(${button}.getBoundingClientRect())`,
  );
  for (const type of ['mousePressed', 'mouseReleased']) {
    await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
  }
  return true;
}

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const words = JSON.parse(Buffer.concat(chunks).toString('utf8'));
const { browser, listens } = start(program, profile);
try {
  const page = await attach(await listens);
  await page.send('Page.navigate', { url });
  const titles = [];
  for (let before = await loaded(page); ; before = await loaded(page, before)) {
    titles.push(await page.read('document.title'));
    if (titles.length > PAGES) throw new Error(`still asked after ${titles}`);
    if (!(await goOn(page, words))) break;
  }
  console.log(JSON.stringify(titles));
} finally {
  browser.kill();
}
