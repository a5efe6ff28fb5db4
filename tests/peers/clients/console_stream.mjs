// At the console: the way in, the stream of judged calls, findings.
import { button, call, clean, click, go, json, link, picture, plan, press, read, reload, rows, same, send, settle, tool, type, until } from './console_page.mjs';
import { XSS } from './xss.mjs';

export const tests = {
  'the token opens it; logging out closes it': async () => {
    await send('Page.navigate', { url: `${plan.admin}/console` });
    await until('the form', 'document.querySelector("#door")?.hidden === false');
    await picture('login');
    await type('#token', plan.token);
    await press('Enter');
    await until('the frame', 'document.querySelector("#app")?.hidden === false');
    await until('an empty stream', 'document.body.innerText.includes("No messages yet")');
    await until('where agents are to go', `document.querySelector("main").innerText.includes(${json(`${plan.agents}/mcp/`)})`);
    await picture('empty');
    for (const [view, word] of [['approvals', 'No pending requests'], ['quarantine', 'The quarantine is empty'], ['connected', 'No agents connected']]) {
      await go(view);
      same(`${view} says that there is nothing`, await read(`document.querySelector("main").innerText.includes(${json(word)})`), true);
      await picture(`empty-${view}`);
    }
    same('the cookie', await read('document.cookie'), '');
    await click('#logout');
    await until('a question', 'document.querySelector("dialog[open]")');
    await click('dialog .primary');
    await until('the form', 'document.querySelector("#door")?.hidden === false');
    same('after that', await read('fetch("/console/api/session").then(answer => answer.status)'), 401);
  },
  'nobody comes in without a token, and a wrong one says so': async () => {
    await type('#token', 'no-such-token');
    await press('Enter');
    await until('a word', 'document.querySelector("#login-fault")?.textContent.includes("invalid token")');
    same('the frame', await read('document.querySelector("#app").hidden'), true);
    for (const path of ['stream', 'overview', 'rules', 'quarantine', 'session']) same(path, (await fetch(`${plan.admin}/console/api/${path}`)).status, 401);
  },
  'a link counts once, and leaves the address': async () => {
    const once = link();
    await send('Page.navigate', { url: once });
    await until('the frame', 'document.querySelector("#app")?.hidden === false');
    same('the address', await read('location.href.includes("code")'), false);
    const code = once.split('code=')[1];
    const again = await fetch(`${plan.admin}/console/api/login`, { method: 'POST', body: json({ code }) });
    same('used again', again.status, 401);
    const foreign = await fetch(`${plan.admin}/console/api/login`, { method: 'POST', body: json({ token: plan.token }), headers: { origin: 'http://evil.example' } });
    same('by another page', foreign.status, 403);
    await reload();
    await until('the frame again', 'document.querySelector("#app")?.hidden === false');
  },
  'the stream shows calls as they are judged': async () => {
    await call('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: XSS, version: XSS } });
    for (const list of ['tools', 'prompts', 'resources']) await call(`${list}/list`, {});
    await tool('plain', { city: 'Berlin' });
    await tool('run_command', { command: 'rm -rf / --no-preserve-root' });
    await tool('run_command', { command: 'ls -la' });
    await tool('fetch_page', { url: `https://example.com/${XSS}`, [XSS]: XSS });
    await tool('fails', { note: XSS });
    await tool('boom', { note: XSS });
    await tool(XSS, { x: XSS });
    await call('prompts/get', { name: XSS, arguments: { [XSS]: XSS } });
    await call('resources/read', { uri: `note://${XSS}` });
    await call(`method/${XSS}`, { x: XSS });
    await tool('plain', { city: 'Paris' }, 'gone');
    await until('lines', 'document.querySelectorAll("#lines li").length > 20');
    await until('a refused one', 'document.querySelector("#lines .line.block")');
    await picture('live');
    await clean('live');
  },
  'filters narrow it, and pausing holds it': async () => {
    const all = await rows();
    const choose = (filter, start) => read(`(select => { select.value = [...select.options].find(one => one.value.startsWith(${json(start)})).value; select.dispatchEvent(new Event("change")); })(document.querySelector("#filter-${filter}"))`);
    const clear = () => read(`${button('.filters', 'Clear')}.click()`);
    await choose('verdict', 'block');
    await until('fewer', `document.querySelectorAll("#lines li").length < ${all}`);
    same('all refused', await read('[...document.querySelectorAll("#lines .chip")].every(chip => chip.textContent === "block")'), true);
    await picture('filtered');
    await clear();
    await choose('verdict', 'not pass');
    await until('more', 'document.querySelectorAll("#lines .line.block").length > 0 && document.querySelectorAll("#lines .line.rewrite").length > 0');
    same('none that passed', await read('document.querySelectorAll("#lines .line.pass").length'), 0);
    await clear();
    await choose('tool', XSS.slice(0, 20));
    await until('the one that is called so', `(lines => lines.length && lines.length < ${all} && [...lines].every(line => line.textContent.includes("owned(")))(document.querySelectorAll("#lines .what"))`);
    await clear();
    await type('#filter-text', 'berlin');
    await until('one', 'document.querySelectorAll("#lines li").length === 1');
    await clear();
    await click('#pause');
    const before = await rows();
    await tool('plain', { city: 'Rome' });
    await until('a count', 'document.querySelector("#live-count").textContent.includes("more since paused")');
    same('held', await rows(), before);
    await click('#pause');
    await until('more', `document.querySelectorAll("#lines li").length > ${before}`);
  },
  'a finding opened shows the text with the span marked, and the rule beside it': async () => {
    await read('[...document.querySelectorAll("#lines .line.block")].find(line => line.textContent.includes("run_command")).click()');
    await until('the match', 'document.querySelector("#detail .finding mark")');
    same('what matched', await read('document.querySelector("#detail .finding mark").textContent.startsWith("rm -rf /")'), true);
    same('the rule', await read('document.querySelector("#detail .finding strong").textContent.length > 5'), true);
    await picture('finding');
    await read('[...document.querySelectorAll("#detail .finding:first-of-type details")].forEach(one => { one.open = true; })');
    same('its cases, and how it would be let pass', await read('(text => ["Test cases of the rule", "[[policy.default.suppress]]", "reason", "until"].filter(part => !text.includes(part)))(document.querySelector("#detail .finding").innerText)'), []);
    same('cases are many', await read('document.querySelectorAll("#detail .finding li").length > 3'), true);
    await picture('finding-explained');
    await press('Escape');
    same('closed', await read('document.querySelector("#detail") === null'), true);
  },
  'a false alarm is let pass with one button, a reason and its table in view': async () => {
    const bomb = ':(){ :|:& };:';
    const refused = async () => (await tool('run_command', { command: bomb })).includes('Blocked by lychgate');
    same('refused before', await refused(), true);
    await until('its line', '[...document.querySelectorAll("#lines .line.block")].some(line => line.textContent.includes("fork-bomb"))');
    await read('[...document.querySelectorAll("#lines .line.block")].find(line => line.textContent.includes("fork-bomb")).click()');
    await until('the button', `Boolean(${button('#detail .finding', 'Suppress')})`);
    await read('[...document.querySelectorAll("#detail .finding details")].forEach(one => { one.open = true; })');
    await read(`${button('#detail .finding', 'Suppress')}.click()`);
    await until('the question', 'document.querySelector("dialog[open] form")');
    same('the table is shown first', await read('["[[policy.default.suppress]]", "fork-bomb", "sha256", "run_command"].filter(part => !document.querySelector("dialog pre").textContent.includes(part))'), []);
    await clean('the question');
    const calls = () => read('performance.getEntriesByType("resource").filter(one => one.name.includes("/api/suppress/")).length');
    await click('dialog button[type=submit]');
    await until('that it wants a reason', 'document.querySelector("dialog .fault:not([hidden])")?.textContent.includes("who decided this")');
    same('nothing is sent without one', await calls(), 0);
    same('refused still', await refused(), true);
    await type('dialog input[name=reason]', 'Ada: a joke <b onclick=owned(3)>');
    await picture('suppress');
    await click('dialog button[type=submit]');
    await until('that it is in force', 'document.querySelector("dialog") === null && document.body.innerText.includes("in force, written to")');
    same('passes now', await refused(), false);
    same('another one does not', (await tool('run_command', { command: `${bomb}\nrm -rf /` })).includes('Blocked by lychgate'), true);
    await press('Escape');
  },
  'what a server said is in the details, as text': async () => {
    const lines = await rows();
    for (let at = 0; at < lines; at += 1) {
      await read(`document.querySelectorAll("#lines .line")[${at}].click()`);
      await read('[...document.querySelectorAll("#detail details")].forEach(one => { one.open = true; })');
    }
    await settle();
    await read('[...document.querySelectorAll("#lines .line")].find(line => line.textContent.includes("fetch_page") && line.textContent.includes("←")).click()');
    await until('the match', 'document.querySelector("#detail .finding mark")');
    await picture('hostile');
    await read('[...document.querySelectorAll("#detail details")].forEach(one => { one.open = true; })');
    same('what it said is there', await read('["owned(", "U+202E"].filter(part => !document.querySelector("#detail").innerText.includes(part))'), []);
    await clean('details');
    await press('Escape');
  },
};
