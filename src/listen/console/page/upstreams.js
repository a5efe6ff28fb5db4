// The upstreams: state, latency and logins.

import { ago, chip, count, empty, fill, h, head, renew, span, toast } from './dom.js';
import { ask } from './api.js';
import { only } from './live.js';

const STATES = { up: 'up', down: 'down', auth_required: 'login required' };

/** The view; returns its refresh function. */
export function show(main) {
  const place = h('div', { class: 'grid', id: 'upstreams' }, [empty('Loading …')]);
  fill(main, head('Upstreams', 'The servers behind the gate, and the state after their last calls.'), place);
  return {
    every: 5000,
    refresh: async byItself => {
      const all = await ask('upstreams', { byItself });
      renew(place, ...(all.length ? all.map(one) : [empty('No upstreams', 'None are configured.')]));
    },
  };
}

function one(server) {
  // A login invalidates the state of the last call.
  const since = server.state === 'auth_required' && server.login?.token_of === 'gate' && server.login.kept.some(each => each.logged_in);
  const [state, named] = since ? ['up', 'logged in'] : [server.state, STATES[server.state] ?? server.state];
  const ms = value => (value === null || value === undefined ? '–' : `${value} ms`);
  return h('section', { class: 'card stack', 'aria-label': server.name }, [
    h('div', { class: 'row' }, [h('span', { class: `dot ${state}` }), h('h2', { class: 'wrap' }, [server.name]), h('span', { class: 'gap' }), chip(named, state)]),
    server.why ? h('pre', { class: 'text' }, [server.why]) : null,
    // `why` already contains the output.
    server.printed.length && !server.why ? h('div', {}, [h('h3', {}, ['Standard error']), h('pre', { class: 'text' }, [server.printed.join('\n')])]) : null,
    h('div', { class: 'row soft' }, [`policy ${server.policy ?? '–'}`, server.mode === 'observe' ? chip('observe mode', 'ask') : null]),
    h('div', { class: 'tiles close' }, [['messages', count(server.calls)], ['refused', count(server.blocked)], ['failed', count(server.failed)], ['median', ms(server.p50_ms)], ['95th percentile', ms(server.p95_ms)]]
      .map(([name, value]) => h('div', {}, [h('strong', {}, [value]), h('div', { class: 'small soft' }, [name])]))),
    server.login ? login(server, state === 'auth_required') : null,
    h('div', { class: 'row' }, [h('a', { href: '#/live', 'data-key': `${server.name}/calls`, onclick: () => only('upstream', server.name) }, ['Show its calls'])]),
  ]);
}

/** Links to logins that the browser did not open, by server. */
const blocked = {};
const goOn = link => h('a', { href: link, target: '_blank', rel: 'noopener noreferrer' }, ['Continue to the login']);

function login(server, wanted) {
  const { token_of: whose, owed, kept, fault } = server.login;
  const name = whose === 'gate' ? null : h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: whose === 'agent' ? 'agent’s name' : 'user’s name', 'aria-label': `Whose login at ${server.name}: the ${whose}’s name` });
  const button = h('button', {
    type: 'button', 'data-key': `${server.name}/login`, class: owed || wanted ? 'primary' : '',
    onclick: async () => {
      button.disabled = true;
      // Opened during the click: browsers block windows that are opened later.
      const page = window.open('about:blank', '_blank');
      try {
        const query = name ? `?${whose}=${encodeURIComponent(name.value.trim())}` : '';
        const { link } = await ask(`upstreams/${encodeURIComponent(server.name)}/login${query}`, { method: 'POST' });
        if (!/^https?:\/\//.test(link)) throw new Error('invalid login link');
        if (page) {
          page.opener = null;
          page.location.replace(link);
        } else {
          blocked[server.name] = link;
          fill(links, goOn(link));
        }
      } catch (error) {
        page?.close();
        toast(error.message);
      }
      button.disabled = false;
    },
  }, [!name && kept.some(each => each.logged_in) ? 'Log in again' : 'Log in']);
  if (kept.some(each => each.logged_in)) delete blocked[server.name];
  const links = h('span', {}, blocked[server.name] ? [goOn(blocked[server.name])] : []);
  return h('div', { class: 'stack' }, [
    h('h3', {}, ['Logins', owed ? ` · ${owed} required` : '']),
    fault ? h('p', { class: 'fault' }, [fault]) : null,
    ...kept.map(each => h('div', {}, [
      h('div', { class: 'row' }, [h('strong', {}, [each.principal]), chip(each.logged_in ? 'logged in' : 'login required', each.logged_in ? 'pass' : 'ask')]),
      h('div', { class: 'small soft wrap' }, [[each.issuer, each.scopes ? `scopes ${each.scopes}` : '', expires(each)].filter(Boolean).join(' · ')]),
      each.error ? h('div', { class: 'small fault' }, [each.error]) : null,
    ])),
    kept.length ? null : h('p', { class: 'small soft' }, [owed || wanted ? 'No logins.' : 'No login has been required so far.']),
    h('div', { class: 'row' }, [name, button, links]),
  ]);
}

function expires({ expires: at, renews }) {
  if (!at) return '';
  const left = at - Date.now() / 1000;
  return `${left > 0 ? `ends in ${span(left)}` : `ended ${ago(at)}`}${renews ? ', renewed automatically' : ''}`;
}
