// A person at Chromium: opens a link, fills in what the pages ask for, and presses their first button, until a page
// asks nothing more.   node chromium.mjs PROGRAM PROFILE URL < {"name": "…", "password": "…"}
// Prints the titles of the pages, a JSON list. Driven over the DevTools protocol, without a library.
import { attach, start } from './devtools.mjs';
import { follow } from './person.mjs';

const [program, profile, url] = process.argv.slice(2);
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const words = JSON.parse(Buffer.concat(chunks).toString('utf8'));
const { browser, listens } = start(program, profile);
try {
  const page = await attach(await listens);
  await page.send('Page.navigate', { url });
  console.log(JSON.stringify(await follow(page, words)));
} finally {
  browser.kill();
}
