// Pinned definitions, pending changes and tool visibility.

import { chip, copier, empty, fill, h, head, renew, sure, toast } from './dom.js';
import { ask } from './api.js';

/** The view; returns its refresh function. */
export function show(main) {
  const place = h('div', { class: 'stack', id: 'pins' }, [empty('Loading …')]);
  fill(main, head('Definitions', 'Tools, prompts and resources as pinned. Agents see the pinned definitions until a change is approved.'), place);
  const refresh = async byItself => drawn(place, await ask('pins', { byItself }), refresh);
  return { every: 5000, refresh };
}

function drawn(place, { upstreams, file }, refresh) {
  // Keep expanded entries open.
  const open = new Set([...place.querySelectorAll('details[open]')].map(one => one.dataset.key));
  const waiting = upstreams.flatMap(one => one.definitions.filter(each => each.waits).map(each => ({ ...each, upstream: one.name })));
  renew(place,
    ...waiting.map(one => held(one, refresh)),
    waiting.length ? null : h('div', { class: 'card' }, [empty('No pending changes', 'Definitions that a server changes are shown here, compared with the pinned ones.')]),
    ...upstreams.map(upstream => known(upstream, open, refresh)),
    file ? null : h('p', { class: 'soft small' }, ['Pins are lost when the gate stops: set ', h('code', {}, ['file']), ' under ', h('code', {}, ['[pins]']), ' to store them.']));
}

const MARKS = { '+': 'added', '-': 'gone' };

/** A pending change: its diff, and a button that approves exactly this change. */
function held(one, refresh) {
  const approve = async () => {
    if (!(await sure('Approve this definition?', `Agents of ${one.upstream} will see it. Review every added line: it may contain instructions to agents.`, 'Approve', 'danger'))) return;
    try {
      const { upstream, kind, name, waits: { sha256 } } = one;
      await ask('pins/approve', { method: 'POST', data: { upstream, kind, name, sha256 } });
      toast('approved');
      await refresh(false);
    } catch (error) {
      toast(error.message);
    }
  };
  return h('section', { class: 'card stack held', 'aria-label': `Change of ${one.kind} ${one.name}` }, [
    h('div', { class: 'row' }, [h('h2', { class: 'wrap few' }, [`${one.upstream} · ${one.name}`]), h('span', { class: 'gap' }), chip(one.kind, 'note'), ...one.waits.classes.map(name => chip(name, 'ask'))]),
    h('pre', { class: 'text diff' }, one.waits.diff.map(([mark, line]) => h('div', { class: MARKS[mark] ?? '' }, [`${mark} ${line}`]))),
    one.waits.left_out ? h('p', { class: 'fault' }, [`${one.waits.left_out} more lines are not shown here: run lychgate pins diff`]) : null,
    h('div', { class: 'row' }, [
      copier(`lychgate pins diff ${one.upstream}`, 'Copy as command'), h('span', { class: 'gap' }),
      one.waits.left_out ? null : h('button', { type: 'button', class: 'primary', 'data-key': `${one.upstream}/${one.kind}/${one.name}/approve`, onclick: approve }, ['Approve']),
    ]),
  ]);
}

/** The definitions of a server; for tools, whether agents see them. */
function known(upstream, open, refresh) {
  const { name, policy, definitions } = upstream;
  const key = `definitions/${name}`;
  const how = definitions.some(each => each.can_toggle) ? 'Hide and Show edit the config file; the running gate applies it within seconds.'
    : definitions.some(each => each.toggle) ? 'To hide or show a tool, add the copied lines to the config; a running gate reloads it.' : null;
  return h('details', { class: 'card', 'data-key': key, open: open.has(key) }, [
    h('summary', {}, [h('strong', {}, [name]), ` · ${definitions.length} definitions, policy ${policy ?? '–'}`]),
    definitions.length ? h('ul', { class: 'plain' }, definitions.map(each => h('li', { class: 'row' }, [
      h('span', { class: 'wrap few mono' }, [each.name]), chip(each.kind, 'note'),
      each.waits ? chip('pending', 'ask') : null,
      each.kind !== 'tool' ? null : chip(each.hidden ? 'hidden' : 'shown', each.hidden ? 'block' : 'pass'),
      h('span', { class: 'gap' }),
      each.can_toggle ? toggle(upstream, each, refresh) : each.toggle ? copier(each.toggle, each.hidden ? 'Copy config to show it' : 'Copy config to hide it') : null,
    ]))) : empty('No definitions yet', 'Definitions are pinned when an agent first lists them.'),
    how ? h('p', { class: 'soft small' }, [how]) : null,
  ]);
}

/** Tools whose change is being written: their buttons wait. */
const writing = new Set();

/** Hides a tool or shows it, in the config of the gate. */
function toggle(upstream, one, refresh) {
  const { name, policy, shares_policy: upstreams } = upstream;
  const hide = !one.hidden;
  const word = hide ? 'Hide' : 'Show';
  const key = `${name}/tool/${one.name}/toggle`;
  const button = h('button', { type: 'button', 'data-key': key, 'aria-label': `${word} ${one.name}`, disabled: writing.has(key), onclick: async () => {
    if (!(await sure(`${word} this tool?`, question(hide, one.name, policy, upstreams), word, hide ? 'primary' : 'danger'))) return;
    writing.add(key);
    button.disabled = true;
    try {
      const done = await ask('pins/hide', { method: 'POST', data: { upstream: name, tool: one.name, hidden: hide, policy, upstreams } });
      toast(done.in_force ? `${hide ? 'hidden' : 'shown'}, written to ${done.file}` : `written to ${done.file}; not in force yet: see the gate’s log`);
    } catch (error) {
      byHand(error.message, one.toggle);
    } finally {
      writing.delete(key);
      button.disabled = false;
    }
    await refresh(false).catch(error => toast(error.message));
  } }, [word]);
  return button;
}

function question(hide, tool, policy, upstreams) {
  const of = upstreams.length > 1 ? `the upstreams ${upstreams.join(', ')}, which share the policy ${policy},` : `the upstream ${upstreams[0]} (policy ${policy})`;
  const then = hide ? 'no longer see this tool and cannot call it' : 'see this tool and can call it, even if a pattern hides it';
  return `${tool}: agents of ${of} ${then}. This changes the gate’s config file.`;
}

/** Why the config was not written, and the lines to add manually. */
function byHand(why, lines) {
  const title = 'The config was not changed';
  const dialog = h('dialog', { 'aria-label': title }, [
    h('h2', {}, [title]), h('p', { class: 'fault' }, [why]),
    h('p', { class: 'soft' }, ['To make the change manually, add these lines to the config; if the table already exists, set the key there.']),
    h('pre', { class: 'text' }, [lines]),
    h('div', { class: 'row' }, [copier(lines), h('button', { type: 'button', onclick: () => dialog.close() }, ['Close'])]),
  ]);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
