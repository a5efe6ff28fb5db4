// Charts of the last hour, the most frequent rules, and the policies in force.

import { bars, curves, figures, legend, minutes } from './chart.js';
import { ago, chip, copier, count, empty, facts, fill, h, head, span, table } from './dom.js';
import { ask } from './api.js';

const sum = (all, name) => all.reduce((total, minute) => total + minute[name], 0);

/** The view; returns its refresh function. */
export function show(main) {
  const place = h('div', { class: 'stack' }, [empty('Loading …')]);
  fill(main, head('Overview', 'The last hour, and the policies in force.'), place);
  return { every: 5000, refresh: async byItself => drawn(place, await ask('overview', { byItself })) };
}

const matches = all => (all ? `injections found (${count(all)} ${all === 1 ? 'match' : 'matches'})` : 'injections found');

function drawn(place, now) {
  // Keep expanded tables open.
  const open = [...place.querySelectorAll('details')].map(one => one.open);
  const all = minutes(now);
  const tile = (value, name, alert) => h('div', { class: `card tile ${alert && value !== '0' ? 'alert' : ''}` }, [h('b', {}, [value]), h('span', {}, [name])]);
  const most = Math.max(1, ...now.top_rules.map(top => top.count));
  const modes = new Set(now.policies.map(one => one.mode));
  fill(place,
    h('div', { class: 'tiles' }, [
      tile(count(sum(all, 'calls')), 'messages out'), tile(count(sum(all, 'blocked')), 'refused', true),
      tile(count(sum(all, 'injections')), matches(sum(all, 'injection_matches')), true), tile(count(sum(all, 'failed')), 'calls failed', true),
      tile(count(now.connected), 'connected'),
    ]),
    h('div', { class: 'grid' }, [
      h('section', { class: 'card' }, [h('h2', {}, ['Messages per minute']),
        bars('Messages per minute, and how many were refused', all, minute => minute.calls, [[minute => minute.blocked, 'bar bad']]),
        legend([['sent by agents', ''], ['refused, in both directions', 'bad']]),
        figures('Messages per minute', all, [['Out', minute => minute.calls], ['Refused', minute => minute.blocked], ['Asked', minute => minute.asked], ['Failed', minute => minute.failed]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Injections per minute']),
        bars('Messages with injections per minute', all, minute => minute.injections, [[minute => minute.injections, 'bar warn']]),
        legend([['server messages with injections', 'warn']]),
        figures('Injections per minute', all, [['Messages', minute => minute.injections], ['Matches', minute => minute.injection_matches]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Inspection time']),
        curves('Inspection time: median and 99th percentile', all),
        legend([['median', ''], ['99th percentile', 'warn']]),
        figures('Inspection time, in microseconds', all, [['Median, µs', minute => minute.p50], ['99th percentile, µs', minute => minute.p99]])]),
      h('section', { class: 'card' }, [h('h2', {}, ['Most frequent rules']), now.top_rules.length
        ? h('div', { class: 'bars' }, now.top_rules.map(top => h('div', { class: 'top-rule' }, [
            h('a', { class: 'mono wrap', href: `#/rules/${encodeURIComponent(top.rule)}` }, [top.rule]), h('span', { class: 'num' }, [count(top.count)]),
            h('progress', { max: most, value: top.count, 'aria-label': `${top.rule}: ${top.count}` })])))
        : empty('No rule has matched', 'since the gate was started.')]),
    ]),
    h('section', { class: 'card' }, [h('h2', {}, ['In force']), facts([
      ['lychgate', now.version], ['running for', `${span(now.uptime_seconds)}, since ${new Date(now.started * 1000).toLocaleString()}`],
      ['reload', reload(now)],
      ['protection', modes.has('observe') ? 'some policies only observe: findings are recorded, and messages pass' : 'verdicts are enforced'],
    ]), table('Policies in force', [
      ['Upstream', one => one.upstream], ['Policy', one => one.policy], ['Mode', one => chip(one.mode, one.mode === 'observe' ? 'ask' : 'pass')],
      ['Rules out / in', one => `${one.outbound_rules} / ${one.inbound_rules}`, 'num'],
      ['Rule set', one => h('span', { class: 'mono wrap', title: `${one.outbound_digest} ${one.inbound_digest}` }, [`${one.outbound_digest.slice(0, 10)} · ${one.inbound_digest.slice(0, 10)}`])],
      ['', one => copier(`${one.outbound_digest} ${one.inbound_digest}`, 'Copy digests')],
    ], now.policies)]));
  place.querySelectorAll('details').forEach((one, at) => { one.open = open[at] ?? false; });
}

function reload({ reload: last, now }) {
  if (!last) return 'none since start';
  const told = last.told.length ? h('details', {}, [h('summary', {}, [last.applied ? `${last.told.length} weakened` : `${last.told.length} faults`]), h('pre', { class: 'text' }, [last.told.join('\n')])]) : null;
  return h('div', {}, [chip(last.applied ? 'applied' : 'refused', last.applied ? (last.told.length ? 'ask' : 'pass') : 'block'), ` ${ago(last.at, now)}${last.applied ? '' : '; the old rules stay in force'}`, told]);
}
