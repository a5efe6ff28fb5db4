// A person who goes through pages: fills in what they ask for, and presses their first button, until one asks nothing more.

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

/** Clicks where an element is on the screen, as a hand would. */
export async function press({ send, read }, element) {
  await read(`${element}.scrollIntoView({ block: 'center' })`);
  const { x, y } = await read(
    `(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(${element}.getBoundingClientRect())`,
  );
  for (const type of ['mousePressed', 'mouseReleased']) {
    await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
  }
}

/** Types into every field that there is a word for, and clicks; false if the page asks nothing. */
async function goOn(page, words) {
  const { send, read } = page;
  if (!(await read('document.forms.length > 0'))) return false;
  for (const [name, word] of Object.entries(words)) {
    const there = await read(`(field => field && (field.focus(), true))(document.querySelector('input[name="${name}"]'))`);
    if (there) await send('Input.insertText', { text: word });
  }
  await press(page, 'document.forms[0].querySelector("button, input[type=submit]")');
  return true;
}

/** Goes from page to page; their titles. */
export async function follow(page, words) {
  const titles = [];
  for (let before = await loaded(page); ; before = await loaded(page, before)) {
    titles.push(await page.read('document.title'));
    if (titles.length > PAGES) throw new Error(`still asked after ${titles}`);
    if (!(await goOn(page, words))) return titles;
  }
}
