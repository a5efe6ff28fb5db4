// The frame: login, views, keyboard shortcuts.

import { fill, h, sure, toast } from './dom.js';
import { ask, forget, hasProof, logIn, logOut, onEnd } from './api.js';
import * as live from './live.js';
import * as notify from './notify.js';
import * as overview from './overview.js';
import * as people from './people.js';
import * as pins from './pins.js';
import * as quarantine from './quarantine.js';
import * as rules from './rules.js';
import * as upstreams from './upstreams.js';

const $ = id => document.getElementById(id);
const VIEWS = [
  ['live', 'Live', main => live.show(main)],
  ['overview', 'Overview', main => overview.show(main)],
  ['approvals', 'Approvals', main => people.approvals(main, waits)],
  ['upstreams', 'Upstreams', main => upstreams.show(main)],
  ['definitions', 'Definitions', main => pins.show(main)],
  ['rules', 'Rules', (main, id) => rules.show(main, id)],
  ['quarantine', 'Quarantine', (main, id) => quarantine.show(main, id)],
  ['connected', 'Connected', main => people.connected(main)],
];
const STATES = { live: 'live', lost: 'connection lost', paused: 'paused', wait: 'connecting' };
/** User activity keeps the session open; reported at most this often. */
const TOUCH_MS = 60000;

let inside = null;
let timer = 0;
let touched = 0;

function theme(wanted) {
  const dark = wanted ? wanted === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

function switchTheme() {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('lychgate-console-theme', next);
  theme(next);
}

function stateIs(state) {
  if ($('state').dataset.state === state) return;
  $('state').dataset.state = state;
  $('state-text').textContent = STATES[state];
}

/** Shows the number of pending approvals in every view. */
function waits(number) {
  const badge = $('waits');
  badge.hidden = !number;
  if (badge.textContent !== String(number)) badge.textContent = String(number);
  document.title = number ? `(${number}) lychgate console` : 'lychgate console';
}

function tabs() {
  fill($('tabs'), ...VIEWS.map(([name, label], at) => h('li', {}, [h('a', { href: `#/${name}`, title: `${label} (${at + 1})`, 'data-view': name }, [label,
    name === 'approvals' ? h('span', { class: 'badge', id: 'waits', hidden: true }) : null])])));
}

/** Opens the view of the address. */
function route() {
  if (!inside) return;
  clearTimeout(timer);
  live.hide();
  const [, name, id] = location.hash.split('/');
  const [chosen, , show] = VIEWS.find(([known]) => known === name) ?? VIEWS[0];
  for (const link of document.querySelectorAll('#tabs a')) {
    const here = link.dataset.view === chosen;
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    if (here) link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  let argument;
  try {
    argument = id ? decodeURIComponent(id) : undefined;
  } catch {
    argument = undefined;
  }
  const shown = show($('main'), argument);
  window.scrollTo(0, 0);
  if (shown) keep(shown, shown, true);
}

/** Refreshes a view periodically while the page is visible. */
function keep(shown, first, isFirst = false) {
  const mine = inside;
  const again = () => { timer = setTimeout(() => (document.hidden ? again() : keep(shown, first)), shown.every); };
  shown.refresh(!isFirst).then(again, error => {
    if (inside !== mine || !mine) return;
    if (isFirst) toast(error.message);
    again();
  });
}

/** Polls for pending approvals in every view. */
async function watchQuestions(signal) {
  while (!signal.aborted) {
    await questions();
    await new Promise(resolve => setTimeout(resolve, 4000));
  }
}

async function questions() {
  if (document.hidden && !notify.allowed()) return;
  const all = await ask('approvals', { byItself: true }).catch(() => null);
  if (!all) return;
  waits(all.length);
  notify.show(all);
}

function enter() {
  if (inside) return;
  inside = new AbortController();
  $('door').hidden = true;
  $('app').hidden = false;
  stateIs('wait');
  live.start(stateIs, questions, inside.signal);
  watchQuestions(inside.signal);
  route();
}

function leave(why = '') {
  inside?.abort();
  inside = null;
  clearTimeout(timer);
  forget();
  fill($('main'));
  $('app').hidden = true;
  $('door').hidden = false;
  $('login-fault').textContent = why;
  $('token').focus();
}

const HELP = [['1 – 8', 'open the views, in their order'], ['/', 'find'], ['j  k  ↓  ↑', 'next or previous line'], ['Enter', 'open the line'], ['Esc', 'close it'], ['p', 'pause or resume the stream'], ['t', 'switch between light and dark'], ['?', 'this list']];

function help() {
  if (document.querySelector('dialog')) return;
  const dialog = h('dialog', { 'aria-label': 'Keyboard shortcuts' }, [
    h('h2', {}, ['Keyboard shortcuts']),
    h('dl', { class: 'keys' }, HELP.flatMap(([keys, does]) => [h('dt', {}, [h('kbd', {}, [keys])]), h('dd', {}, [does])])),
    h('div', { class: 'row' }, [h('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, ['Close'])]),
  ]);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function key(event) {
  if (!inside || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog')) return;
  const typing = event.target.closest?.('input, textarea, select');
  if (typing && event.key !== 'Escape') return;
  if (typing) {
    typing.blur();
    return;
  }
  const view = VIEWS[Number(event.key) - 1];
  const act = view ? () => { location.hash = `#/${view[0]}`; $('main').focus({ preventScroll: true }); } : { '?': help, t: switchTheme }[event.key];
  if (act) act();
  else if (live.key(event.key)) ;
  else if (event.key === '/' && $('rules-filter')) $('rules-filter').focus();
  else return;
  event.preventDefault();
}

function touch() {
  if (!inside || Date.now() - touched < TOUCH_MS) return;
  touched = Date.now();
  ask('session').catch(() => {});
}

async function begin() {
  theme(localStorage.getItem('lychgate-console-theme'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => theme(localStorage.getItem('lychgate-console-theme')));
  tabs();
  onEnd(() => { if (inside) leave('The session has ended.'); });
  notify.offer($('notify'));
  $('theme').addEventListener('click', switchTheme);
  $('help').addEventListener('click', help);
  $('logout').addEventListener('click', async () => {
    if (!(await sure('Log out?', 'To log in again, this browser needs a new link or the token.', 'Log out'))) return;
    await logOut();
    leave();
  });
  $('login').addEventListener('submit', async event => {
    event.preventDefault();
    const token = $('token').value;
    $('token').value = '';
    try {
      await logIn({ token });
      enter();
    } catch (error) {
      $('login-fault').textContent = error.message;
    }
  });
  addEventListener('hashchange', () => { if (!coded()) route(); });
  addEventListener('keydown', key);
  addEventListener('keydown', touch);
  addEventListener('pointerdown', touch);
  if (coded()) return;
  if (hasProof()) {
    try {
      await ask('session');
      enter();
      return;
    } catch {
      forget();
    }
  }
  leave();
}

/** Logs in by a link, if the address is one; the code is removed from the address. */
function coded() {
  const code = location.hash.match(/^#code=([0-9a-f]+)$/)?.[1];
  if (!code) return false;
  history.replaceState(null, '', `${location.pathname}#/live`);
  if (inside) return true;
  logIn({ code }).then(enter, error => leave(error.message));
  return true;
}

begin();
