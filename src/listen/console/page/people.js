// Who is connected, and what waits for a person's yes.

import { ago, chip, count, empty, fill, h, head, renew, sure, table, toast } from './dom.js';
import { ask } from './api.js';
import { only } from './live.js';

/** The view of who is connected; gives what brings it up to date. */
export function connected(main) {
  const place = h('div', { class: 'card', id: 'present' }, [empty('Looking …')]);
  fill(main, head('Connected', 'Agents, their sessions and streams.'), place);
  return {
    every: 5000,
    refresh: async byItself => {
      const all = await ask('present', { byItself });
      renew(place, all.length ? table('Who is connected', [
        ['Agent', one => h('span', {}, [h('a', { href: '#/live', 'data-key': [one.agent, one.user, one.upstream, one.session].join(' '), onclick: () => only('agent', one.agent) }, [one.agent]), one.user ? h('div', { class: 'small soft few', title: one.user }, [`for ${one.user}`]) : null])],
        ['Upstream', one => one.upstream], ['Session', one => (one.session ? h('span', { class: 'mono' }, [one.session]) : h('span', { class: 'soft' }, ['none']))],
        ['Client', one => (one.client ? h('span', { class: 'few', title: `${one.client} ${one.client_version ?? ''}` }, [one.client, one.client_version ? h('span', { class: 'small soft' }, [` ${one.client_version}`]) : null]) : h('span', { class: 'soft' }, ['not named']))],
        ['Speaks', one => (one.era === 'modern' ? '2026-07-28' : 'with sessions'), 'nowrap'],
        ['Since', one => h('span', { title: new Date(one.since * 1000).toLocaleString() }, [ago(one.since)]), 'nowrap'], ['Last', one => ago(one.last), 'nowrap'],
        ['Messages', one => count(one.calls), 'num'],
        ['Now', one => h('span', { class: 'nowrap' }, [one.streams ? chip(one.streams === 1 ? 'listens' : `${one.streams} streams`, 'pass') : null, one.open ? chip(`${one.open} open`, 'note') : null, one.streams || one.open ? null : h('span', { class: 'soft' }, ['quiet'])])],
      ], all) : empty('Nobody is connected', 'Agents stand here once they have made a call.'));
    },
  };
}

const SCOPES = { once: 'Allow once', session: 'Allow in this session', call: 'Allow this call until restart', always: 'Allow this call for good' };

/** The view of open questions; gives what brings it up to date. */
export function approvals(main, told) {
  const place = h('div', { class: 'stack', id: 'approvals' }, [empty('Looking …')]);
  fill(main, head('Approvals', 'Calls that wait for a person’s yes. What nobody answers in time is answered with no.'), place);
  const cards = new Map();
  return {
    every: 2000,
    refresh: async byItself => {
      const all = await ask('approvals', { byItself });
      told(all.length);
      // What is there stands still until the view is left, also once it is answered: nobody clicks on what was another question.
      for (const [id, card] of cards) if (!all.some(one => one.id === id)) over(card, 'It waits no longer.');
      for (const one of all) {
        if (!cards.has(one.id)) cards.set(one.id, question(one, () => told([...cards.values()].filter(card => !card.classList.contains('over')).length)));
        document.getElementById(`left-${one.id}`)?.replaceChildren(seconds(one.seconds_left));
      }
      if (!cards.size) fill(place, nothing());
      else if (!place.querySelector('.question')) fill(place, ...cards.values());
      else place.append(...[...cards.values()].filter(card => !card.isConnected));
    },
  };
}

const seconds = left => `${left} s left`;
const nothing = () => h('div', { class: 'card' }, [empty('Nothing waits', 'Rules with the action ', h('code', {}, ['ask']), ', and policies that want a yes for writes, put their questions here.')]);

/** Leaves a question as one that nobody can answer any more. */
function over(card, words) {
  if (card.classList.contains('over')) return;
  const had = card.contains(document.activeElement);
  card.classList.add('over');
  card.querySelector('.left').replaceChildren();
  fill(card.querySelector('.answers'), h('strong', {}, [words]));
  if (had) card.focus({ preventScroll: true });
}

const DONE = { once: 'Allowed once.', session: 'Allowed in this session.', call: 'Allowed until the gate is started anew.', always: 'Allowed for good.' };

function question(one, answered) {
  const answer = async (decision, scope) => {
    if (scope === 'always' && !(await sure('Allow this for good?', `Every call of ${one.tool} with exactly these arguments will pass from now on, without a question.`, 'Allow for good', 'danger'))) return;
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
    h('div', {}, [h('h3', {}, ['Exactly this would be sent']), h('pre', { class: 'text' }, [one.shown])]),
    h('div', { class: 'row answers' }, [
      h('button', { type: 'button', class: 'danger', onclick: () => answer('deny') }, ['Refuse']), h('span', { class: 'gap' }),
      ...one.scopes.map((scope, at) => h('button', { type: 'button', class: at ? '' : 'primary', onclick: () => answer('approve', scope) }, [SCOPES[scope] ?? scope])),
    ]),
  ]);
  return card;
}
