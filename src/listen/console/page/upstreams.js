// The servers behind the gate: how they are, how fast, and who is logged in there.

import { ago, chip, count, empty, fill, h, head, span, toast } from './dom.js';
import { ask } from './api.js';
import { only } from './live.js';

const STATES = { up: 'up', down: 'down', auth_required: 'wants a login' };

/** The view; gives what brings it up to date. */
export function show(main) {
  const place = h('div', { class: 'grid', id: 'upstreams' }, [empty('Looking …')]);
  fill(main, head('Upstreams', 'The servers behind the gate, as their last calls went.'), place);
  return {
    every: 5000,
    refresh: async byItself => {
      const all = await ask('upstreams', { byItself });
      // Whoever types or stands on a button here is not thrown off.
      if (byItself && place.contains(document.activeElement)) return;
      fill(place, ...(all.length ? all.map(one) : [empty('No upstreams', 'The config names none.')]));
    },
  };
}

function one(server) {
  const ms = value => (value === null || value === undefined ? '–' : `${value} ms`);
  return h('section', { class: 'card stack', 'aria-label': server.name }, [
    h('div', { class: 'row' }, [h('span', { class: `dot ${server.state}` }), h('h2', { class: 'wrap' }, [server.name]), h('span', { class: 'gap' }), chip(STATES[server.state] ?? server.state, server.state)]),
    server.why ? h('pre', { class: 'text' }, [server.why]) : null,
    h('div', { class: 'row soft' }, [`policy ${server.policy ?? '–'}`, server.mode === 'observe' ? chip('observes only', 'ask') : null]),
    h('div', { class: 'tiles' }, [['messages', count(server.calls)], ['refused', count(server.blocked)], ['failed', count(server.failed)], ['half within', ms(server.p50_ms)], ['95 % within', ms(server.p95_ms)]]
      .map(([name, value]) => h('div', {}, [h('strong', {}, [value]), h('div', { class: 'small soft' }, [name])]))),
    server.login ? login(server) : null,
    h('div', { class: 'row' }, [h('a', { href: '#/live', onclick: () => only('upstream', server.name) }, ['Its calls'])]),
  ]);
}

function login(server) {
  const { token_of: whose, owed, kept, fault } = server.login;
  const name = whose === 'gate' ? null : h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: whose === 'agent' ? 'agent’s name' : 'user’s name', 'aria-label': `Whose login at ${server.name}: the ${whose}’s name` });
  const button = h('button', {
    type: 'button', class: owed || server.state === 'auth_required' ? 'primary' : '',
    onclick: async () => {
      button.disabled = true;
      // Opened now, by the click: a browser would keep back one that opens later by itself.
      const page = window.open('about:blank', '_blank');
      try {
        const query = name ? `?${whose}=${encodeURIComponent(name.value.trim())}` : '';
        const { link } = await ask(`upstreams/${encodeURIComponent(server.name)}/login${query}`, { method: 'POST' });
        if (!/^https?:\/\//.test(link)) throw new Error('the link is none');
        if (page) {
          page.opener = null;
          page.location.replace(link);
        } else {
          fill(links, h('a', { href: link, target: '_blank', rel: 'noopener noreferrer' }, ['Go on to the login']));
        }
      } catch (error) {
        page?.close();
        toast(error.message);
      }
      button.disabled = false;
    },
  }, ['Log in']);
  const links = h('span');
  return h('div', { class: 'stack' }, [
    h('h3', {}, ['Logins', owed ? ` · ${owed} owed` : '']),
    fault ? h('p', { class: 'fault' }, [fault]) : null,
    ...kept.map(each => h('div', {}, [
      h('div', { class: 'row' }, [h('strong', {}, [each.principal]), chip(each.logged_in ? 'logged in' : 'login owed', each.logged_in ? 'pass' : 'ask')]),
      h('div', { class: 'small soft wrap' }, [[each.issuer, each.scopes ? `scopes ${each.scopes}` : '', expires(each)].filter(Boolean).join(' · ')]),
      each.error ? h('div', { class: 'small fault' }, [each.error]) : null,
    ])),
    kept.length ? null : h('p', { class: 'small soft' }, ['Nobody is logged in.']),
    h('div', { class: 'row' }, [name, button, links]),
  ]);
}

function expires({ expires: at, renews }) {
  if (!at) return '';
  const left = at - Date.now() / 1000;
  return `${left > 0 ? `ends in ${span(left)}` : `ended ${ago(at)}`}${renews ? ', renewed by itself' : ''}`;
}
