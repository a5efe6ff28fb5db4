// The rules in force, how often each has matched, and a box to try a text against them.

import { ago, chip, copier, count, empty, facts, fill, h, head, micros, toast } from './dom.js';
import { ask } from './api.js';
import { steps } from './entry.js';
import { only } from './live.js';

let filter = '';
let order = 'hits';
const tried = { text: '', place: 'result', tool: 'tool', argument: 'text', upstream: '' };

/** The view, with the rule `id` opened; returns its refresh function. */
export function show(main, id) {
  const list = h('div', { class: 'card lines' }, [empty('Loading …')]);
  const beside = h('div', { class: 'stack' });
  const found = h('input', { type: 'search', id: 'rules-filter', placeholder: 'Find rules  (/)', 'aria-label': 'Find rules', value: filter });
  const sort = h('select', { 'aria-label': 'Order', class: 'wide' }, [['hits', 'Most matches first'], ['name', 'By name'], ['severity', 'Most severe first']].map(([value, name]) => h('option', { value, selected: value === order }, [name])));
  fill(main, head('Rules', 'Rules in force. Counts since the gate started.'), h('div', { class: 'grid beside' }, [h('div', { class: 'stack' }, [h('div', { class: 'filters' }, [found, sort]), list]), beside]));
  let all = [];
  const draw = () => fill(list, rows(all, found.value.toLowerCase(), id));
  found.addEventListener('input', () => { filter = found.value; draw(); });
  sort.addEventListener('change', () => { order = sort.value; draw(); });
  if (id) whole(id, beside);
  else box(beside);
  return {
    every: 15000,
    refresh: async byItself => {
      all = await ask('rules', { byItself });
      if (!byItself || !list.contains(document.activeElement)) draw();
    },
  };
}

const GRAVE = ['critical', 'high', 'medium', 'low', 'info'];
const ORDERS = {
  hits: (a, b) => b.count - a.count || a.id.localeCompare(b.id),
  name: (a, b) => a.id.localeCompare(b.id),
  severity: (a, b) => GRAVE.indexOf(a.severity) - GRAVE.indexOf(b.severity) || a.id.localeCompare(b.id),
};

function rows(all, word, id) {
  const wanted = all.filter(rule => !word || `${rule.id} ${rule.title} ${rule.pack ?? ''} ${rule.severity} ${rule.direction} ${Object.values(rule.actions)}`.toLowerCase().includes(word)).sort(ORDERS[order]);
  if (!wanted.length) return empty(all.length ? 'No matching rules' : 'No rules are in force');
  return h('table', { class: 'cards', 'aria-label': 'Rules in force' }, [
    h('thead', {}, [h('tr', {}, ['Rule', 'Action', 'Matches'].map((name, at) => h('th', { scope: 'col', class: at === 2 ? 'num' : '' }, [name])))]),
    h('tbody', {}, wanted.map(rule => h('tr', {}, [
      h('td', { 'data-label': 'Rule' }, [h('div', {}, [h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(rule.id)}`, 'aria-current': rule.id === id ? 'true' : null }, [rule.id]), h('div', { class: 'small soft few' }, [`${rule.direction} · ${rule.title}`])])]),
      h('td', { 'data-label': 'Action' }, [h('div', { class: 'row tight' }, [...[...new Set(Object.values(rule.actions))].map(action => chip(action)), chip(rule.severity)])]),
      h('td', { class: 'num', 'data-label': 'Matches' }, [h('div', { title: rule.last ? ago(rule.last) : 'never' }, [count(rule.count)])]),
    ]))),
  ]);
}

async function whole(id, place) {
  fill(place, empty('Loading …'));
  const rule = await ask(`rules/${encodeURIComponent(id)}`).catch(error => error);
  if (!place.isConnected) return;
  if (rule instanceof Error) {
    fill(place, h('section', { class: 'card' }, [empty(id, rule.message), h('div', { class: 'row' }, [h('a', { href: '#/rules' }, ['All rules'])])]));
    return;
  }
  const cases = (title, all) => (all.length ? h('div', {}, [h('h3', {}, [title]), h('div', { class: 'stack' }, all.slice(0, 40).map(each => h('div', {}, [
    h('pre', { class: 'text' }, [each.text]),
    h('button', { type: 'button', class: 'quiet small', onclick: () => { Object.assign(tried, { text: each.text, place: rule.direction === 'outbound' ? 'argument' : 'result' }); location.hash = '#/rules'; } }, ['Try it']),
  ])))]) : null);
  fill(place, h('section', { class: 'card stack', 'aria-label': `Rule ${rule.id}` }, [
    h('div', { class: 'row title' }, [h('h2', { class: 'mono wrap' }, [rule.id]), h('a', { href: '#/rules' }, ['Close'])]),
    h('div', {}, [h('strong', {}, [rule.title]), h('p', {}, [rule.why])]),
    h('div', { class: 'row' }, [chip(rule.severity), ...Object.entries(rule.actions).map(([policy, action]) => h('span', {}, [chip(action), h('span', { class: 'small soft' }, [` in ${policy}`])]))]),
    facts([['direction', rule.direction], ['matches', `${count(rule.count)}, last ${ago(rule.last)}`], ['packs', rule.packs.join(', ')], ['file', `${rule.file}:${rule.line}${rule.builtin ? ' (built in)' : ''}`], ['former ids', rule.was.join(', ')]]),
    rule.references.length ? h('div', {}, [h('h3', {}, ['References']), ...rule.references.map(link => h('div', { class: 'wrap' }, [h('a', { href: link, target: '_blank', rel: 'noopener noreferrer' }, [link])]))]) : null,
    rule.source ? h('details', {}, [h('summary', {}, ['Source']), h('pre', { class: 'text' }, [rule.source]), copier(rule.source)]) : null,
    cases('Must match', rule.catches), cases('Must not match', rule.spares),
    h('div', { class: 'row' }, [h('a', { href: '#/live', onclick: () => only('rule', rule.id) }, ['Show its findings']), copier(rule.id, 'Copy id')]),
  ]));
}

const PLACES = [['result', 'in a tool’s result'], ['description', 'in a tool’s description'], ['argument', 'in an argument of a call']];

function box(place) {
  const out = h('div', { class: 'stack', id: 'tried', 'aria-live': 'polite' });
  const text = h('textarea', { id: 'try-text', 'aria-label': 'Text to try', placeholder: 'Ignore all previous instructions …', spellcheck: 'false' });
  text.value = tried.text;
  const where = h('select', { id: 'try-place' }, PLACES.map(([value, name]) => h('option', { value, selected: value === tried.place }, [name])));
  const upstream = h('select', { id: 'try-upstream' });
  const tool = h('input', { type: 'text', value: tried.tool, id: 'try-tool' });
  const argument = h('input', { type: 'text', value: tried.argument, id: 'try-argument' });
  const named = h('label', { class: 'field' }, ['Argument', argument]);
  const fit = () => { named.hidden = where.value !== 'argument'; };
  where.addEventListener('change', fit);
  fit();
  // Disabled until the upstreams are loaded.
  const go = h('button', { type: 'submit', class: 'primary', disabled: true }, ['Try']);
  ask('overview', { byItself: true }).then(({ policies }) => {
    fill(upstream, ...policies.map(each => h('option', { value: each.upstream, selected: each.upstream === tried.upstream }, [`${each.upstream} (${each.policy})`])));
    go.disabled = !policies.length;
  }, error => toast(error.message));
  const form = h('form', {
    class: 'stack', id: 'try',
    onsubmit: async event => {
      event.preventDefault();
      Object.assign(tried, { text: text.value, place: where.value, tool: tool.value, argument: argument.value, upstream: upstream.value });
      try {
        fill(out, verdictOf(await ask('try', { method: 'POST', data: tried })));
      } catch (error) {
        toast(error.message);
      }
    },
  }, [
    text,
    h('div', { class: 'row end' }, [
      h('label', { class: 'field' }, ['Location', where]), h('label', { class: 'field' }, ['Upstream', upstream]), h('label', { class: 'field' }, ['Tool', tool]), named,
      go,
    ]),
  ]);
  fill(place, h('section', { class: 'card stack' }, [h('div', {}, [h('h2', {}, ['Try a text']), h('p', { class: 'soft' }, ['Inspected by the rules in force, as in a message of the upstream. Nothing is recorded or sent.'])]), form, out]));
}

function verdictOf(answer) {
  return h('div', { class: 'stack' }, [
    h('div', { class: 'row' }, [chip(answer.verdict), h('span', { class: 'soft' }, [`${answer.findings.length === 1 ? '1 finding' : `${answer.findings.length} findings`} · policy ${answer.policy} · ${micros(answer.micros)}`]), answer.mode === 'observe' ? chip('observe mode', 'ask') : null]),
    answer.refusal ? h('p', {}, [answer.refusal]) : null,
    ...answer.findings.map(found => h('article', { class: 'finding' }, [
      h('div', { class: 'row' }, [chip(found.severity), chip(found.action), h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(found.rule)}` }, [found.rule])]),
      h('div', {}, [found.title]), h('div', { class: 'small soft wrap' }, [`${found.surface} at ${found.at || '/'} · ${found.reading} reading · ${count(found.length)} bytes matched`]),
      ...steps(found.steps),
    ])),
    answer.becomes === null ? null : h('div', {}, [h('h3', {}, ['Delivered as']), h('pre', { class: 'text' }, [answer.becomes])]),
    answer.findings.length ? null : h('p', { class: 'soft' }, [`No findings (${count(answer.strings)} strings inspected).`]),
    answer.uninspected.length ? h('p', { class: 'fault' }, [`Not fully inspected: ${answer.uninspected.join(', ')}`]) : null,
  ]);
}
