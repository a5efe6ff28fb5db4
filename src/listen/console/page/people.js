// Connected agents, and pending approvals.

import { ago, chip, count, empty, fill, h, head, renew, sure, table, toast } from './dom.js';
import { ask } from './api.js';
import { only } from './live.js';

/** The view of connected agents; returns its refresh function. */
export function connected(main) {
  const place = h('div', { class: 'card', id: 'present' }, [empty('Loading …')]);
  fill(main, head('Connected', 'Agents, their sessions and streams.'), place);
  return {
    every: 5000,
    refresh: async byItself => {
      const all = await ask('present', { byItself });
      renew(place, all.length ? table('Connected agents', [
        ['Agent', one => h('span', {}, [h('a', { href: '#/live', 'data-key': [one.agent, one.user, one.upstream, one.session].join(' '), onclick: () => only('agent', one.agent) }, [one.agent]), one.user ? h('div', { class: 'small soft few', title: one.user }, [`for ${one.user}`]) : null])],
        ['Upstream', one => one.upstream], ['Session', one => (one.session ? h('span', { class: 'mono' }, [one.session]) : h('span', { class: 'soft' }, ['none']))],
        ['Client', one => (one.client ? h('span', { class: 'few', title: `${one.client} ${one.client_version ?? ''}` }, [one.client, one.client_version ? h('span', { class: 'small soft' }, [` ${one.client_version}`]) : null]) : h('span', { class: 'soft' }, ['not named']))],
        ['Protocol', one => (one.era === 'modern' ? '2026-07-28' : 'with sessions'), 'nowrap'],
        ['Since', one => h('span', { title: new Date(one.since * 1000).toLocaleString() }, [ago(one.since)]), 'nowrap'], ['Last', one => ago(one.last), 'nowrap'],
        ['Messages', one => count(one.calls), 'num'],
        ['Now', one => h('span', { class: 'nowrap' }, [one.streams ? chip(one.streams === 1 ? '1 stream' : `${one.streams} streams`, 'pass') : null, one.open ? chip(`${one.open} open`, 'note') : null, one.streams || one.open ? null : h('span', { class: 'soft' }, ['idle'])])],
      ], all) : empty('No agents connected', 'Agents are listed after their first call.'));
    },
  };
}

const SCOPES = { once: 'Allow once', session: 'Allow in this session', call: 'Allow this call until restart', always: 'Allow this call permanently' };

/** The view of pending approvals; returns its refresh function. */
export function approvals(main, onCount) {
  const place = h('div', { class: 'stack', id: 'approvals' }, [empty('Loading …')]);
  fill(main, head('Approvals', 'Calls that wait for approval. Requests that are not answered in time are denied.'), place);
  const cards = new Map();
  return {
    every: 2000,
    refresh: async byItself => {
      const all = await ask('approvals', { byItself });
      onCount(all.length);
      // Cards keep their position until the view is left, even when answered, so that no click hits another request.
      for (const [id, card] of cards) if (!all.some(one => one.id === id)) over(card, 'No longer pending.');
      for (const one of all) {
        if (!cards.has(one.id)) cards.set(one.id, question(one, () => onCount([...cards.values()].filter(card => !card.classList.contains('over')).length)));
        document.getElementById(`left-${one.id}`)?.replaceChildren(seconds(one.seconds_left));
      }
      if (!cards.size) fill(place, nothing());
      else if (!place.querySelector('.question')) fill(place, ...cards.values());
      else place.append(...[...cards.values()].filter(card => !card.isConnected));
    },
  };
}

const seconds = left => `${left} s left`;
const nothing = () => h('div', { class: 'card' }, [empty('No pending requests', 'Requests come from rules with the action ', h('code', {}, ['ask']), ', and from policies that require approval of writes.')]);

/** Marks a request as closed. */
function over(card, words) {
  if (card.classList.contains('over')) return;
  const had = card.contains(document.activeElement);
  card.classList.add('over');
  card.querySelector('.left').replaceChildren();
  fill(card.querySelector('.answers'), h('strong', {}, [words]));
  if (had) card.focus({ preventScroll: true });
}

const DONE = { once: 'Allowed once.', session: 'Allowed in this session.', call: 'Allowed until the gate restarts.', always: 'Allowed permanently.' };

function question(one, answered) {
  const answer = async (decision, scope) => {
    if (scope === 'always' && !(await sure('Allow this permanently?', `Every call of ${one.tool} with exactly these arguments will pass without approval.`, 'Allow permanently', 'danger'))) return;
    try {
      await ask(`approvals/${encodeURIComponent(one.id)}`, { method: 'POST', data: { decision, scope, by: 'console' } });
      over(card, decision === 'deny' ? 'Refused.' : DONE[scope] ?? 'Allowed.');
      answered();
    } catch (error) {
      toast(error.message);
    }
  };
  const card = h('section', { class: 'card stack question', tabindex: '-1', 'aria-label': `Question ${one.id}` }, [
    h('div', { class: 'row' }, [chip(one.severity), h('h2', { class: 'wrap' }, [one.title]), h('span', { class: 'gap' }), h('span', { class: 'soft nowrap left', id: `left-${one.id}` }, [seconds(one.seconds_left)])]),
    h('div', { class: 'wrap' }, [h('strong', {}, [one.agent]), one.user ? h('span', { class: 'soft' }, [` for ${one.user}`]) : '', ' calls ', h('strong', {}, [one.tool]), ' of ', h('strong', {}, [one.upstream]), one.waiting ? '; it waits' : '; it will try again', h('span', { class: 'soft' }, [` (${one.rules.join(', ')})`])]),
    h('p', { class: 'soft' }, [one.why]),
    h('div', {}, [h('h3', {}, ['Would be sent exactly as']), h('pre', { class: 'text' }, [one.shown])]),
    h('div', { class: 'row answers' }, [
      h('button', { type: 'button', class: 'danger', onclick: () => answer('deny') }, ['Refuse']), h('span', { class: 'gap' }),
      ...one.scopes.map((scope, at) => h('button', { type: 'button', class: at ? '' : 'primary', onclick: () => answer('approve', scope) }, [SCOPES[scope] ?? scope])),
    ]),
  ]);
  return card;
}
