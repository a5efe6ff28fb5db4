// An audit line, and how it is shown.

import { chip, copier, count, empty, facts, fill, h, micros, plainly, toast, visible } from './dom.js';
import { ask } from './api.js';
import { NAMES } from './members.js';

/** A member of a line; undefined where it has none. */
export const get = (line, what) => line?.[NAMES[what]];
const text = (line, what) => {
  const value = get(line, what);
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
};
export const word = text;

const EVENTS = {
  judged: 'message', failed: 'call failed', turned_away: 'rejected', approval: 'approval request', refused_again: 'refused again',
  overlaid: 'list overlaid', definition: 'definition changed', pinned: 'pinned', page: 'result part', login: 'login',
  reloaded: 'rules reloaded', reload_refused: 'reload refused', pins_reloaded: 'pins reloaded', pins_refused: 'pins refused',
  log_opened: 'log opened', denied: 'access denied',
};

/** The verdict or outcome, in a word. */
export function verdict(line) {
  if (get(line, 'verdict')) return text(line, 'verdict');
  if (get(line, 'event') === 'refused_again') return 'block';
  return '';
}

/** Whether it counts as a refusal. A line of repeated refusals without an id comes on top of that of the judgement. */
export const isRefusal = line => verdict(line) === 'block' && !(get(line, 'event') === 'refused_again' && !get(line, 'audit'));

export const rules = line => [...new Set([text(line, 'rule'), ...list(line, 'findings').map(found => text(found, 'rule'))].filter(Boolean))];

export function list(line, what) {
  const value = get(line, what);
  return Array.isArray(value) ? value : [];
}

/** A short description. */
export function what(line) {
  const event = text(line, 'event');
  if (event !== 'judged') return [EVENTS[event] ?? event, text(line, 'tool') || text(line, 'method')].filter(Boolean).join(' · ');
  const method = text(line, 'method') || text(line, 'kind');
  return text(line, 'tool') || [method, text(line, 'prompt') || text(line, 'resource')].filter(Boolean).join(' ');
}

export function why(line) {
  const found = rules(line);
  if (found.length) return found.length > 1 ? `${found[0]} +${found.length - 1}` : found[0];
  return text(line, 'error_message') || text(line, 'error') || text(line, 'reason') || text(line, 'outcome');
}

export const who = line => [text(line, 'agent'), text(line, 'upstream')].filter(Boolean).join(get(line, 'direction') === 'inbound' ? ' ← ' : ' → ');

/** The details panel beside the list. */
export function detail(line, close) {
  const audit = text(line, 'audit');
  const findings = list(line, 'findings');
  const explained = h('div', { class: 'stack' });
  const panel = h('section', { class: 'card detail', 'aria-label': 'Details', tabindex: '-1', id: 'detail' }, [
    h('div', { class: 'row title' }, [
      h('h2', { class: 'wrap few' }, [verdict(line) ? chip(verdict(line)) : null, ' ', what(line) || 'line']),
      h('button', { class: 'quiet', type: 'button', onclick: close, 'aria-label': 'Close details' }, ['Close']),
    ]),
    explained,
    facts([
      ['when', text(line, 'time')], ['agent', text(line, 'agent')], ['user', text(line, 'user')], ['session', text(line, 'session')],
      ['upstream', text(line, 'upstream')], ['direction', text(line, 'direction')], ['method', text(line, 'method')],
      ['tool', text(line, 'tool')], ['request', text(line, 'request')], ['error', text(line, 'error_message')],
      ['reason', text(line, 'reason')], ['outcome', text(line, 'outcome')],
      ['would be', get(line, 'would') ? `${text(line, 'would')} in enforce mode` : ''],
      ['inspected', text(line, 'coverage')], ['size', get(line, 'bytes') === undefined ? '' : `${count(get(line, 'bytes'))} bytes`],
      ['inspection', get(line, 'inspect_us') === undefined ? '' : micros(get(line, 'inspect_us'))],
      ['server time', get(line, 'upstream_ms') === undefined ? '' : `${text(line, 'upstream_ms')} ms`], ['trace', text(line, 'trace')],
      ['audit', audit],
    ]),
    sent(line),
    h('details', {}, [h('summary', {}, ['Audit line']), h('pre', { class: 'text' }, [JSON.stringify(line, null, 2)])]),
    h('div', { class: 'row' }, [
      audit ? copier(audit, 'Copy audit id') : null,
      audit ? copier(`lychgate explain ${audit}`, 'Copy as command') : null,
      copier(JSON.stringify(line), 'Copy line'),
    ]),
  ]);
  if (findings.length) {
    fill(explained, h('h3', {}, [findings.length === 1 ? '1 finding' : `${findings.length} findings`]), ...findings.slice(0, 20).map(found => finding(line, found)));
    if (audit) explain(audit, explained);
  }
  return panel;
}

/** The sent arguments; secrets are masked in the log. */
function sent(line) {
  const body = get(line, 'arguments') ?? get(line, 'sent');
  if (body === undefined) return null;
  return h('div', {}, [h('h3', {}, ['Sent']), h('pre', { class: 'text' }, [typeof body === 'string' ? body : JSON.stringify(body, null, 2)])]);
}

/** A finding of the line, with its rule as soon as that is loaded. */
function finding(line, found) {
  const rule = text(found, 'rule');
  const beside = h('div', { class: 'soft' }, [' ']);
  const shown = h('article', { class: 'finding' }, [
    h('div', { class: 'row' }, [chip(text(found, 'severity')), chip(text(found, 'action')), h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(rule)}` }, [rule])]),
    beside,
    h('div', { class: 'small soft wrap' }, [
      `${text(found, 'surface')} at ${text(found, 'at') || '/'} · ${text(found, 'reading')} reading · ${count(get(get(found, 'evidence'), 'length'))} bytes matched`,
    ]),
    evidence(line, found),
  ]);
  ask(`rules/${encodeURIComponent(rule)}`, { byItself: true }).then(
    one => fill(beside, h('strong', {}, [one.title]), h('div', {}, [one.why])),
    () => fill(beside, 'The rule is no longer in force, or is internal to the gate.'),
  );
  return shown;
}

/** The string at a finding's place, as far as the line has it. */
function evidence(line, found) {
  const at = text(found, 'at');
  const body = get(line, 'arguments') ?? get(line, 'sent');
  const start = at.startsWith('/params/arguments') ? '/params/arguments' : at.startsWith('/params') ? '/params' : '/result';
  let value = body;
  for (const step of at.slice(start.length).split('/').slice(1)) value = value?.[step.replaceAll('~1', '/').replaceAll('~0', '~')];
  return typeof value === 'string' ? h('pre', { class: 'text' }, [value]) : null;
}

/** Replaces the findings of the line by the gate's explanation with marked matches, if it has one. */
async function explain(audit, place) {
  const explanation = await ask(`explain/${encodeURIComponent(audit)}`, { byItself: true }).catch(() => null);
  if (!explanation?.findings?.length || !place.isConnected) return;
  // The explanation takes the place of links, one of which the keyboard may be on.
  const focused = place.contains(document.activeElement) ? document.activeElement.hash : '';
  fill(place, h('h3', {}, [explanation.findings.length === 1 ? '1 finding' : `${explanation.findings.length} findings`]), ...explanation.findings.map((found, at) => explained(found, audit, at + 1)));
  if (focused) [...place.querySelectorAll('a')].find(link => link.hash === focused)?.focus({ preventScroll: true });
}

function explained(found, audit, number) {
  const rule = found.rule;
  return h('article', { class: 'finding' }, [
    h('div', { class: 'row' }, [rule ? chip(rule.severity) : null, chip(found.action), h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(found.id)}` }, [found.id])]),
    rule ? h('div', {}, [h('strong', {}, [rule.title]), h('div', { class: 'soft' }, [rule.why])]) : null,
    h('div', { class: 'small soft wrap' }, [`at ${found.at || '/'}${found.reading ? ` · ${found.reading} reading` : ''}`]),
    ...found.also.map(other => h('div', { class: 'row small' }, [other.severity ? chip(other.severity) : null, chip(other.action), h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(other.id)}` }, [other.id]), other.title ? h('span', { class: 'soft' }, [other.title]) : null, other.at === found.at ? null : h('span', { class: 'soft wrap' }, [`at ${other.at || '/'}`])])),
    ...steps(found.steps),
    found.shape ? h('p', { class: 'small soft' }, [found.shape]) : null,
    found.note ? h('p', { class: 'small soft' }, [found.note]) : null,
    rule ? h('details', {}, [
      h('summary', {}, ['Test cases of the rule']),
      h('h4', {}, ['Must match']), h('ul', {}, rule.catches.slice(0, 5).map(text => h('li', { class: 'mono wrap small' }, [visible(text)]))),
      h('h4', {}, ['Must not match']), h('ul', {}, rule.spares.slice(0, 5).map(text => h('li', { class: 'mono wrap small' }, [visible(text)]))),
    ]) : null,
    found.suppression ? h('details', {}, [
      h('summary', {}, ['Suppress this finding']),
      h('p', { class: 'small soft' }, ['These tables in the config suppress it.', found.covers ? ` ${found.covers}` : '']),
      h('pre', { class: 'text' }, [found.suppression]),
      h('div', { class: 'row' }, [
        found.wide ? null : h('button', { type: 'button', onclick: () => letPass(found, audit, number) }, ['Suppress']),
        copier(found.suppression),
      ]),
    ]) : null,
  ]);
}

/** Asks for a reason and a last day, shows the tables, and has the gate write them to its config. */
function letPass(found, audit, number) {
  const reason = h('input', { type: 'text', name: 'reason', autocomplete: 'off', placeholder: 'who decided this, and why' });
  const until = h('input', { type: 'text', name: 'until', value: /until = (\d{4}-\d\d-\d\d)/.exec(found.suppression)?.[1] });
  const fault = h('p', { class: 'fault', role: 'alert', hidden: true });
  const write = h('button', { type: 'submit', class: 'primary' }, ['Write to the config']);
  const form = h('form', {
    class: 'stack',
    onsubmit: async event => {
      event.preventDefault();
      if (!reason.value.trim()) {
        fill(fault, 'Enter a reason: who decided this, and why.');
        fault.hidden = false;
        reason.focus();
        return;
      }
      write.disabled = true;
      try {
        const done = await ask(`suppress/${encodeURIComponent(audit)}`, { method: 'POST', data: { finding: number, tables: found.suppression, reason: reason.value, until: until.value } });
        dialog.close();
        toast(done.in_force ? `in force, written to ${done.file}` : `written to ${done.file}; not in force yet: see the gate’s log`);
      } catch (error) {
        fill(fault, error.message);
        fault.hidden = false;
        write.disabled = false;
      }
    },
  }, [
    h('p', { class: 'soft' }, [found.covers ?? '']), h('pre', { class: 'text' }, [found.suppression]),
    h('label', { class: 'field' }, ['Reason', reason]), h('label', { class: 'field' }, ['Until', until]), fault,
    h('div', { class: 'row' }, [h('button', { type: 'button', onclick: () => dialog.close() }, ['Cancel']), write]),
  ]);
  const dialog = h('dialog', { 'aria-label': 'Suppress this finding?' }, [h('h2', {}, ['Suppress this finding?']), form]);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  reason.focus();
}

/** The readings of a text, from how it came to how it was found, with what matched marked. */
export const steps = all => all.map(step => h('div', {}, [h('div', { class: 'small soft' }, [step.reading]), parts(step.parts)]));

function parts(all) {
  return h('pre', { class: 'text' }, all.map(part => part.matched ? h('mark', {}, [visible(part.text)]) : visible(part.text)));
}

export { empty, plainly };
