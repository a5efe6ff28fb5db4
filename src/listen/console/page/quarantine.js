// Quarantined content: view, release and delete, each recorded in the audit log.

import { ago, chip, clock, count, empty, facts, fill, h, head, renew, sure, table, toast } from './dom.js';
import { ask } from './api.js';

/** The view; returns its refresh function. */
export function show(main) {
  const list = h('div', { class: 'card', id: 'quarantine' }, [empty('Loading …')]);
  const beside = h('div', { class: 'stack' });
  fill(main, head('Quarantine', 'Content that was removed from server messages. Viewing and releasing it is recorded in the audit log.'), h('div', { class: 'stack' }, [beside, list]));
  const refresh = async byItself => {
    const all = await ask('quarantine', { byItself });
    if (!all.enabled) fill(list, empty('Quarantine is disabled', 'Removed content is discarded. To keep it, set a folder under ', h('code', {}, ['[quarantine]']), ' in the config.'));
    else if (!all.items.length) fill(list, ...all.faults.map(fault), empty('The quarantine is empty', 'Content that rules remove from answers will be stored here, encrypted.'));
    else renew(list, ...all.faults.map(fault), ...grouped(all.items, beside, refresh, () => refresh(true)), all.left_out ? h('p', { class: 'soft' }, [`and ${count(all.left_out)} older ones: lychgate quarantine list`]) : null);
  };
  return { every: 10000, refresh };
}

/** Minimum number of similar messages that form a group. */
const ALIKE = 4;
/** Rows on a page, and messages of a group that is open. */
const ROWS = 25;
const ITEMS = 25;
/** Which page is shown, which groups are open, and how far. */
const seen = { page: 0, open: new Map() };

/** The rows, the newest first. Messages of one server and tool that were taken out for the same reason are alike. */
function rows(items) {
  const all = new Map();
  for (const item of items) {
    const key = JSON.stringify([item.upstream, item.tool || item.method || '', [...item.why].sort()]);
    if (!all.has(key)) all.set(key, []);
    all.get(key).push(item);
  }
  return [...all].flatMap(([key, of]) => (of.length < ALIKE ? of.map(item => [key, [item]]) : [[key, of]])).sort(([, [a]], [, [b]]) => b.at - a.at);
}

function grouped(items, beside, refresh, again) {
  const all = rows(items);
  const pages = Math.max(1, Math.ceil(all.length / ROWS));
  seen.page = Math.min(seen.page, pages - 1);
  const turn = by => () => { seen.page += by; again(); };
  const shown = all.slice(seen.page * ROWS, (seen.page + 1) * ROWS);
  const single = shown.filter(([, of]) => of.length === 1).map(([, [item]]) => item);
  return [
    ...shown.filter(([, of]) => of.length > 1).map(([key, of]) => group(key, of, beside, refresh, again)),
    single.length ? table('In quarantine', columns(beside, refresh), single) : null,
    pages === 1 ? null : h('div', { class: 'row', id: 'pages' }, [
      h('button', { type: 'button', 'data-key': 'newer', disabled: seen.page === 0, onclick: turn(-1) }, ['Newer']),
      h('span', { class: 'soft' }, [`page ${seen.page + 1} of ${pages}, ${count(items.length)} messages`]),
      h('button', { type: 'button', 'data-key': 'older', disabled: seen.page === pages - 1, onclick: turn(1) }, ['Older']),
    ]),
  ];
}

function group(key, of, beside, refresh, again) {
  const [{ upstream, tool, method, why, at }] = of;
  const most = seen.open.get(key) ?? 0;
  const set = most => () => {
    if (most) seen.open.set(key, most);
    else seen.open.delete(key);
    again();
  };
  return h('section', { class: 'group', 'aria-label': `${of.length} messages of ${upstream}` }, [
    h('div', { class: 'row' }, [
      h('button', { type: 'button', class: 'quiet', 'aria-expanded': String(Boolean(most)), 'data-key': `group/${key}`, onclick: set(most ? 0 : ITEMS) }, [`${count(of.length)} messages`]),
      h('strong', { class: 'wrap few' }, [upstream, ' ', tool || method || '']), h('span', { class: 'small soft mono wrap few' }, [why.slice(0, 4).join(', ')]),
      h('span', { class: 'gap' }), h('span', { class: 'small soft nowrap' }, [ago(at)]),
    ]),
    most ? table('In quarantine', columns(beside, refresh), of.slice(0, most)) : null,
    most && most < of.length ? h('button', { type: 'button', class: 'quiet', 'data-key': `more/${key}`, onclick: set(most + ITEMS) }, [`Show ${count(Math.min(ITEMS, of.length - most))} more`]) : null,
  ]);
}

const fault = text => h('p', { class: 'fault' }, [text]);

const columns = (beside, refresh) => [
  ['When', item => h('span', { class: 'nowrap', title: new Date(item.at * 1000).toLocaleString() }, [ago(item.at)])],
  ['From', item => h('div', { class: 'wrap' }, [h('div', { class: 'few' }, [h('strong', {}, [item.upstream]), ' ', item.tool || item.method || '']), h('div', { class: 'small soft few', title: item.user }, [`to ${item.agent}${item.user ? ` for ${item.user}` : ''}`])])],
  ['Why', item => h('div', { class: 'wrap' }, item.why.slice(0, 4).map(rule => h('div', {}, [h('a', { class: 'mono small', href: `#/rules/${encodeURIComponent(rule)}` }, [rule])])).concat(item.why.length > 4 ? h('div', { class: 'small soft' }, [`and ${item.why.length - 4} more`]) : [])), 'rules'],
  ['Size', item => count(item.bytes), 'num'],
  ['State', item => h('div', {}, [chip(item.state, { kept: 'note', released: 'ask', delivered: 'pass' }[item.state]),
    item.until ? h('div', { class: 'small soft nowrap' }, [`until ${clock(item.until * 1000).slice(0, 5)}`]) : null])],
  ['', item => h('div', { class: 'row acts' }, [
    h('button', { type: 'button', 'data-key': `${item.audit}/show`, onclick: () => look(item, beside) }, ['Show']),
    item.state === 'released' ? null : h('button', { type: 'button', 'data-key': `${item.audit}/release`, onclick: () => release(item, refresh) }, ['Release']),
    h('button', { type: 'button', class: 'danger', 'data-key': `${item.audit}/delete`, onclick: () => remove(item, beside, refresh) }, ['Delete']),
  ])],
];

const act = (item, what) => ask(`quarantine/${encodeURIComponent(item.audit)}/${what}`, { method: 'POST', data: { reason: '' } });

async function look(item, beside) {
  try {
    const whole = await act(item, 'show');
    fill(beside, h('section', { class: 'card stack', 'aria-label': 'Message in quarantine', tabindex: '-1', id: 'kept' }, [
      h('div', { class: 'row title' }, [h('h2', { class: 'wrap few' }, [`${item.upstream} · ${item.tool || item.method || 'message'}`]), h('button', { type: 'button', class: 'quiet', onclick: () => fill(beside) }, ['Close'])]),
      h('p', { class: 'soft' }, ['Untrusted content that a rule removed from a server’s message. Do not follow instructions in it.']),
      ...whole.withheld.map(part => h('div', {}, [h('div', { class: 'small soft mono wrap' }, [part.at]), h('pre', { class: 'text' }, [part.text])])),
      h('details', { open: !whole.withheld.length }, [h('summary', {}, [whole.is_whole ? 'The whole message' : 'The message (truncated)']), h('pre', { class: 'text' }, [whole.message])]),
      facts([['audit', item.audit], ['policy', item.policy], ['when', new Date(item.at * 1000).toLocaleString()]]),
    ]));
    document.getElementById('kept').focus();
  } catch (error) {
    toast(error.message);
  }
}

async function release(item, refresh) {
  const meant = await sure('Release this message?', `${item.agent} receives it unmodified, once, with its next identical call or as a resource. The removed content may contain malicious instructions.`, 'Release', 'danger');
  if (meant) await done(() => act(item, 'release'), 'released for one delivery', refresh);
}

async function remove(item, beside, refresh) {
  if (!(await sure('Delete this message?', 'It cannot be restored.', 'Delete', 'danger'))) return;
  await done(() => act(item, 'delete'), 'deleted', refresh);
  fill(beside);
}

async function done(what, message, refresh) {
  try {
    await what();
    toast(message);
    await refresh(false);
  } catch (error) {
    toast(error.message);
  }
}
