// Charts as SVG, each with its data as a table.

import { h, s, clock, count, micros } from './dom.js';

const WIDTH = 420;
const HEIGHT = 132;
const LEFT = 38;
const BOTTOM = 18;

/** The hour in minutes, the oldest first. */
export function minutes({ hour, now }) {
  const end = Math.floor(now / 60) + 1;
  const all = Array.from({ length: 60 }, (_, at) => ({ at: (end - 60 + at) * 60, calls: 0, blocked: 0, injections: 0, injection_matches: 0, asked: 0, failed: 0, p50: null, p99: null }));
  for (const moment of hour) {
    const minute = all[Math.floor(moment.at / 60) - (end - 60)];
    if (!minute) continue;
    minute.calls += moment.outbound;
    for (const name of ['blocked', 'injections', 'injection_matches', 'asked', 'failed']) minute[name] += moment[name];
    for (const [name, of] of [['p50', 'p50_us'], ['p99', 'p99_us']]) if (moment[of] !== null) minute[name] = Math.max(minute[name] ?? 0, moment[of]);
  }
  return all;
}

const nice = top => {
  if (top <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(top));
  return [1, 2, 4, 5, 10].map(times => times * size).find(value => value >= top);
};

const STEP = (WIDTH - LEFT) / 60;
const x = at => LEFT + at * STEP;

function frame(label, all, top, format) {
  const y = value => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 8);
  const lines = [0, top / 2, top].flatMap(value => [
    s('line', { class: 'axis', x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }),
    s('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, [format(value)]),
  ]);
  const times = [0, 15, 30, 45, 59].map(at => s('text', { x: at === 59 ? WIDTH : x(at), y: HEIGHT - 3, 'text-anchor': at === 59 ? 'end' : at ? 'middle' : 'start' }, [clock(all[at].at * 1000).slice(0, 5)]));
  return { y, drawn: s('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label }, [...lines, ...times]) };
}

/** Stacked bars: calls, and those that were stopped. */
export function bars(label, all, of, parts) {
  const top = nice(Math.max(...all.map(of)));
  const { y, drawn } = frame(label, all, top, count);
  all.forEach((minute, at) => {
    for (const [part, kind] of [[of, 'bar'], ...parts]) {
      const value = Math.min(part(minute), top);
      if (value) drawn.append(s('rect', { class: kind, x: x(at) + 0.8, width: STEP - 1.4, y: y(value), height: HEIGHT - BOTTOM - y(value), rx: 1 }, [s('title', {}, [`${clock(minute.at * 1000).slice(0, 5)}: ${count(part(minute))}`])]));
    }
  });
  return drawn;
}

/** Two lines, with gaps where there is no data. */
export function curves(label, all) {
  const top = nice(Math.max(...all.map(minute => minute.p99 ?? 0), 10));
  const { y, drawn } = frame(label, all, top, micros);
  for (const [name, kind] of [['p50', 'a'], ['p99', 'b']]) {
    let path = '';
    all.forEach((minute, at) => {
      if (minute[name] === null) return;
      path += `${path && all[at - 1]?.[name] !== null ? 'L' : 'M'}${x(at) + STEP / 2} ${y(minute[name])}`;
      drawn.append(s('circle', { class: `dot-${kind}`, cx: x(at) + STEP / 2, cy: y(minute[name]), r: 2 }, [s('title', {}, [`${clock(minute.at * 1000).slice(0, 5)}: ${micros(minute[name])}`])]));
    });
    if (path) drawn.append(s('path', { class: `line-${kind}`, d: path }));
  }
  return drawn;
}

/** The data as a table. */
export function figures(label, all, columns) {
  const rows = all.filter(minute => columns.some(([, of]) => of(minute)));
  return h('details', {}, [h('summary', { class: 'small' }, ['As a table']), rows.length ? h('div', { class: 'scroll' }, [h('table', { 'aria-label': label }, [
    h('thead', {}, [h('tr', {}, [h('th', { scope: 'col' }, ['Minute']), ...columns.map(([name]) => h('th', { scope: 'col', class: 'num' }, [name]))])]),
    h('tbody', {}, rows.map(minute => h('tr', {}, [h('td', {}, [clock(minute.at * 1000).slice(0, 5)]), ...columns.map(([, of]) => h('td', { class: 'num' }, [String(of(minute) ?? '')]))]))),
  ])]) : h('p', { class: 'small soft' }, ['No data in the last hour.'])]);
}

export const legend = pairs => h('div', { class: 'legend' }, pairs.map(([name, kind]) => h('span', {}, [h('i', { class: kind }), name])));
