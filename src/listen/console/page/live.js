// The live stream of audit lines: newest first, filtered, paused while a line is read.

import { chip, clock, count, empty, fill, h, micros, plainly } from './dom.js';
import { ask, listen } from './api.js';
import { detail, get, isRefusal, rules, verdict, what, who, why, word } from './entry.js';

/** Limits of lines in memory, and of lines on the page. */
const KEPT = 2000;
const SHOWN = 250;
/** Minimum interval of announcements of refusals to screen readers, in ms. */
const TELL_MS = 15000;

/** Filter value: every verdict except an unmodified pass. */
const NOT_PASS = 'not pass';
const passed = line => verdict(line) === 'pass' && ['', 'pass'].includes(word(line, 'would'));

const FILTERS = [
  ['upstream', 'Upstream', line => word(line, 'upstream')],
  ['agent', 'Agent', line => word(line, 'agent')],
  ['tool', 'Tool', line => word(line, 'tool')],
  ['verdict', 'Verdict', verdict, [NOT_PASS]],
  ['rule', 'Rule', null],
  ['direction', 'Direction', line => word(line, 'direction')],
];

const lines = [];
const known = Object.fromEntries(FILTERS.map(([name]) => [name, new Set()]));
const chosen = Object.fromEntries(FILTERS.map(([name]) => [name, '']));
let search = '';
let paused = false;
let waiting = [];
let missed = 0;
let opened = null;
let view = null;
let agents = '';
let state = () => {};
let spoken = { at: 0, refused: 0 };

/** Reads the stream during the session; reports its state to the frame, and each approval request:
 *  browsers slow down the timers of pages that are hidden, but not this stream. */
export async function start(onState, asked, signal) {
  state = onState;
  for (let wait = 500; !signal.aborted; ) {
    try {
      // Lines sent again after a reconnect are recognized by their number.
      await listen(lines.length ? 1000 : 500, all => {
        wait = 500;
        took(all);
        if (all.some(({ line }) => get(line, 'event') === 'approval' && get(line, 'outcome') === 'asked')) asked();
      }, signal);
    } catch (error) {
      if (signal.aborted) return;
    }
    state('lost');
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 10000);
  }
}

function took(all) {
  state(paused ? 'paused' : 'live');
  const last = (waiting.at(-1) ?? lines.at(-1))?.n ?? -1;
  // A restarted gate counts from the beginning.
  const fresh = all.filter(one => one.line && (one.n > last || one.n < last - 5000));
  if (lines.length) missed += all.reduce((sum, one) => sum + (one.missed ?? 0), 0);
  waiting.push(...fresh);
  if (waiting.length > KEPT) waiting.splice(0, waiting.length - KEPT);
  if (!paused) take();
  else counted();
}

function take() {
  const fresh = waiting;
  waiting = [];
  lines.push(...fresh);
  if (lines.length > KEPT) lines.splice(0, lines.length - KEPT);
  let more = false;
  for (const { line } of fresh) {
    for (const [name, , of] of FILTERS) {
      for (const value of of ? [of(line)] : rules(line)) {
        if (value && known[name].size < 300 && !known[name].has(value)) more = Boolean(known[name].add(value));
      }
    }
  }
  if (more) options();
  if (fresh.length) speak(fresh);
  draw();
}

function speak(fresh) {
  spoken.refused += fresh.filter(({ line }) => isRefusal(line)).length;
  if (!spoken.refused || Date.now() - spoken.at < TELL_MS || document.hidden) return;
  document.getElementById('status').textContent = `${spoken.refused} refused`;
  spoken = { at: Date.now(), refused: 0 };
}

function fits(line) {
  return FILTERS.every(([name, , of]) => !chosen[name] || (chosen[name] === NOT_PASS && name === 'verdict' ? !passed(line)
    : of ? of(line) === chosen[name] : rules(line).includes(chosen[name])))
    && (!search || JSON.stringify(line).toLowerCase().includes(search));
}

/** The view. */
export function show(main) {
  view = {
    list: h('ol', { 'aria-label': 'Judged calls, the newest first', id: 'lines' }),
    count: h('p', { id: 'live-count' }),
    missed: h('div', { class: 'missed', hidden: true }),
    pause: h('button', { type: 'button', id: 'pause', 'aria-pressed': 'false', onclick: toggle }, ['Pause']),
    frame: h('div', { class: 'live' }),
    none: h('div'),
    selects: {},
  };
  for (const [name, label] of FILTERS) {
    view.selects[name] = h('select', { 'aria-label': label, id: `filter-${name}`, onchange: event => { chosen[name] = event.target.value; draw(); } });
  }
  const find = h('input', { type: 'search', id: 'filter-text', placeholder: 'Find in lines  (/)', 'aria-label': 'Find in lines', value: search, oninput: event => { search = event.target.value.toLowerCase(); draw(); } });
  const labels = h('div', { class: 'labels', 'aria-hidden': 'true' }, ['Time', 'Verdict', 'What', 'Agent and upstream', 'Reason', 'Inspection'].map((label, at) => h('span', { class: at === 5 ? 'num' : '' }, [label])));
  view.frame.append(h('div', { class: 'card lines' }, [view.missed, labels, view.list, view.none]));
  fill(main, h('div', { class: 'head' }, [h('h1', {}, ['Live']), view.count, h('span', { class: 'gap' }), view.pause]),
    h('div', { class: 'filters' }, [find, ...Object.values(view.selects), h('button', { type: 'button', class: 'quiet', onclick: clear }, ['Clear'])]), view.frame);
  options();
  draw();
  counted();
  if (opened) open(opened, false);
  if (!agents) ask('session', { byItself: true }).then(site => { agents = site.agents; draw(); }, () => {});
}

export const hide = () => { view = null; };

function clear() {
  for (const name of Object.keys(chosen)) chosen[name] = '';
  search = '';
  if (view) document.getElementById('filter-text').value = '';
  options();
  draw();
}

/** Opens the stream with one filter set. */
export function only(name, value) {
  clear();
  known[name].add(value);
  chosen[name] = value;
}

function options() {
  if (!view) return;
  for (const [name, label, , always = []] of FILTERS) {
    const values = [...always, ...[...known[name]].filter(value => !always.includes(value)).sort()];
    fill(view.selects[name], h('option', { value: '' }, [label]), ...values.map(value => {
      const option = h('option', {}, [plainly(value, 60)]);
      option.value = value;
      option.selected = value === chosen[name];
      return option;
    }));
  }
}

/** Updates the list without replacing existing entries, so that focus and scroll position are kept. */
function draw() {
  if (!view) return;
  const wanted = [];
  for (let at = lines.length - 1; at >= 0 && wanted.length < SHOWN; at -= 1) if (fits(lines[at].line)) wanted.push(lines[at]);
  const there = new Map([...view.list.children].map(item => [item.entry, item]));
  const focused = document.activeElement?.closest?.('#lines li')?.entry;
  const items = wanted.map(entry => there.get(entry) ?? row(entry));
  let before = null;
  for (const gone of [...view.list.children]) if (!items.includes(gone)) gone.remove();
  for (const item of items) {
    if (item.parentNode !== view.list) view.list.insertBefore(item, before ? before.nextSibling : view.list.firstChild);
    before = item;
  }
  const reachable = items.find(item => item.entry === focused) ?? items.find(item => item.entry === opened) ?? items[0];
  for (const item of items) item.firstChild.tabIndex = item === reachable ? 0 : -1;
  fill(view.none, items.length ? null : lines.length
    ? empty('No lines match these filters', h('button', { type: 'button', onclick: clear }, ['Clear filters']))
    : empty('No messages yet', 'Connect an agent to the gate: ', h('code', {}, [`${agents}/mcp/<upstream>`])));
  view.missed.hidden = !missed;
  fill(view.missed, `${count(missed)} lines arrived faster than this page could read them; the audit log has them.`);
  counted();
}

function counted() {
  if (!view) return;
  const all = lines.length === 1 ? '1 line' : `${count(lines.length)} lines`;
  fill(view.count, paused && waiting.length ? `${all}, ${count(waiting.length)} more since paused` : all);
}

function row(entry) {
  const { line } = entry;
  const done = verdict(line);
  const would = word(line, 'would');
  const shown = done === 'pass' && would && would !== 'pass' ? `would ${would}` : done;
  const item = h('li', {}, [h('button', { type: 'button', class: `line ${/^[a-z]+$/.test(done) ? done : ''}`, 'aria-expanded': 'false', onclick: () => open(entry) }, [
    h('span', { class: 'time' }, [word(line, 'time') ? clock(word(line, 'time')) : '']),
    h('span', { class: 'verdict' }, [shown ? chip(shown, shown.startsWith('would') ? 'observe' : done) : chip('note')]),
    h('span', { class: 'what', title: what(line) }, [what(line)]),
    h('span', { class: 'who', title: who(line) }, [who(line)]),
    h('span', { class: 'why mono', title: why(line) }, [why(line)]),
    h('span', { class: 'took num time' }, [get(line, 'inspect_us') === undefined ? '' : micros(get(line, 'inspect_us'))]),
  ])]);
  item.entry = entry;
  if (entry === opened) item.firstChild.setAttribute('aria-expanded', 'true');
  return item;
}

function open(entry, focus = true) {
  opened = entry;
  if (!view) return;
  for (const item of view.list.children) item.firstChild.setAttribute('aria-expanded', String(item.entry === entry));
  view.frame.querySelector('.detail')?.remove();
  const panel = detail(entry.line, close);
  view.frame.append(panel);
  view.frame.classList.add('open');
  if (focus) panel.focus({ preventScroll: matchMedia('(min-width: 1001px)').matches });
}

function close() {
  const item = [...(view?.list.children ?? [])].find(each => each.entry === opened);
  opened = null;
  view?.frame.querySelector('.detail')?.remove();
  view?.frame.classList.remove('open');
  item?.firstChild.setAttribute('aria-expanded', 'false');
  item?.firstChild.focus();
}

function toggle() {
  paused = !paused;
  state(paused ? 'paused' : 'live');
  view?.pause.setAttribute('aria-pressed', String(paused));
  if (view) fill(view.pause, paused ? 'Resume' : 'Pause');
  if (!paused) take();
  counted();
}

function step(by) {
  const items = [...(view?.list.children ?? [])];
  if (!items.length) return;
  const at = items.findIndex(item => item.contains(document.activeElement) || (item.entry === opened && document.activeElement?.closest?.('.detail')));
  const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
  for (const item of items) item.firstChild.tabIndex = item === next ? 0 : -1;
  next.firstChild.focus();
  if (opened) open(next.entry, false);
}

/** Keys of this view; returns whether the key was handled. */
export function key(name) {
  const act = { p: toggle, j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), Escape: close, '/': () => document.getElementById('filter-text').focus() }[name];
  if (!act || !view || ((name === 'ArrowDown' || name === 'ArrowUp') && !document.activeElement?.closest('#lines')) || (name === 'Escape' && !opened)) return false;
  act();
  return true;
}
