// People at the console, in headless Chromium, before a server that tries to run something in the page.
//   node console.mjs PROGRAM PROFILE PICTURES < {"gate": "lychgate", "config": "…", "agents": "http://…", "admin": "http://…", "issuer": "http://…", "token": "…"}
// Prints [name, fault or null, milliseconds] of each test, as JSON, once it is over.
import { end, listen, picture } from './console_page.mjs';
import { tests as looks } from './console_looks.mjs';
import { tests as stream } from './console_stream.mjs';
import { tests as work } from './console_work.mjs';

try {
  await listen();
  // In this order: what one has done, the next ones look at.
  for (const [name, test] of Object.entries({ ...stream, ...work, ...looks })) {
    const before = Date.now();
    let fault = null;
    try {
      await test();
    } catch (error) {
      fault = error.stack.slice(0, 1800);
      await picture(`failed-${name.replaceAll(/[^a-z]+/g, '-')}`);
    }
    console.log(JSON.stringify([name, fault, Date.now() - before]));
  }
} finally {
  end();
}
