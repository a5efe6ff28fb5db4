// How the gate does: the last hour in charts, the rules that match most, and what is in force.

import { bars, curves, figures, legend, minutes } from './chart.js';
import { ago, chip, copier, count, empty, facts, fill, h, head, span, table } from './dom.js';
import { ask } from './api.js';

const sum = (all, name) => all.reduce((total, minute) => total + minute[name], 0);

/** The view; gives what brings it up to date. */
export function show(main) {
  const place = h('div', { class: 'stack' }, [empty('Looking …')]);
  fill(main, head('Overview', 'The last hour, and what is in force.'), place);
  return { every: 5000, refresh: async byItself => drawn(place, await ask('overview', { byItself })) };
}

const matches = all => (all ? `injections found (${count(all)} ${all === 1 ? 'match' : 'matches'})` : 'injections found');

function drawn(place, now) {
  // A table that somebody has opened stays open.
  const open = [...place.querySelectorAll('details')].map(one => one.open);
  const all = minutes(now);
  const tile = (value, name, alert) => h('div', { class: `card tile ${alert && value !== '0' ? 'alert' : ''}` }, [h('b', {}, [value]), h('span', {}, [name])]);
  const most = Math.max(1, ...now.top_rules.map(top => top.count));
  const modes = new Set(now.policies.map(one => one.mode));
  fill(place,
    h('div', { class: 'tiles' }, [
      tile(count(sum(all, 'calls')), 'messages out'), tile(count(sum(all, 'blocked')), 'refused', true),
      tile(count(sum(all, 'injections')), matches(sum(all, 'injection_matches')), true), tile(count(sum(all, 'failed')), 'calls failed', true),
      tile(count(now.connected), now.connected === 1 ? 'connected' : 'connected'),
    ]),
    h('div', { class: 'grid' }, [
      h('section', { class: 'card' }, [h('h2', {}, ['Messages a minute']),
        bars('Messages a minute, and how many were refused', all, minute => minute.calls, [[minute => minute.blocked, 'bar bad']]),
        legend([['sent by agents', ''], ['refused, both ways', 'bad']]),
        figures('Messages a minute', all, [['Out', minute => minute.calls], ['Refused', minute => minute.blocked], ['Asked', minute => minute.asked], ['Failed', minute => minute.failed]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Injections a minute']),
        bars('Messages with injections a minute', all, minute => minute.injections, [[minute => minute.injections, 'bar warn']]),
        legend([['messages of servers in which an injection was found', 'warn']]),
        figures('Injections a minute', all, [['Messages', minute => minute.injections], ['Matches', minute => minute.injection_matches]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Time that judging takes']),
        curves('Time that judging takes: half within, and 99 in 100 within', all),
        legend([['half within', ''], ['99 in 100 within', 'warn']]),
        figures('Time that judging takes, in microseconds', all, [['Half within, µs', minute => minute.p50], ['99 in 100 within, µs', minute => minute.p99]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Rules that match most']), now.top_rules.length
        ? h('div', { class: 'bars' }, now.top_rules.map(top => h('div', { class: 'top-rule' }, [
            h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(top.rule)}` }, [top.rule]), h('span', { class: 'num' }, [count(top.count)]),
            h('progress', { max: most, value: top.count, 'aria-label': `${top.rule}: ${top.count}` })])))
        : empty('No rule has matched', 'since the gate was started.')]),
    ]),
    h('section', { class: 'card' }, [h('h2', {}, ['In force']), facts([
      ['lychgate', now.version], ['running for', `${span(now.uptime_seconds)}, since ${new Date(now.started * 1000).toLocaleString()}`],
      ['reload', reload(now)],
      ['protection', modes.has('observe') ? 'some policies only observe: what they find is told and passes' : 'what rules find is carried out'],
    ]), table('Policies in force', [
      ['Upstream', one => one.upstream], ['Policy', one => one.policy], ['Mode', one => chip(one.mode, one.mode === 'observe' ? 'ask' : 'pass')],
      ['Rules out / in', one => `${one.outbound_rules} / ${one.inbound_rules}`, 'num'],
      ['Rule set', one => h('span', { class: 'mono wrap', title: `${one.outbound_digest} ${one.inbound_digest}` }, [`${one.outbound_digest.slice(0, 10)} · ${one.inbound_digest.slice(0, 10)}`])],
      ['', one => copier(`${one.outbound_digest} ${one.inbound_digest}`, 'Copy digests')],
    ], now.policies)]));
  place.querySelectorAll('details').forEach((one, at) => { one.open = open[at] ?? false; });
}

function reload({ reload: last, now }) {
  if (!last) return 'none since the start';
  const told = last.told.length ? h('details', {}, [h('summary', {}, [last.applied ? `${last.told.length} weakened` : `${last.told.length} faults`]), h('pre', { class: 'text' }, [last.told.join('\n')])]) : null;
  return h('div', {}, [chip(last.applied ? 'applied' : 'refused', last.applied ? (last.told.length ? 'ask' : 'pass') : 'block'), ` ${ago(last.at, now)}${last.applied ? '' : '; the old rules stay'}`, told]);
}
