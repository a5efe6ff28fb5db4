// All DOM construction. Texts of agents and servers are always text nodes:
// no string is parsed as markup, and invisible and bidirectional characters are shown escaped.

const SVG = 'http://www.w3.org/2000/svg';
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/u;

/** Splits a text at invisible and control characters: [text, isHidden] pairs. */
function pieces(text) {
  const out = [];
  let plain = '';
  for (const letter of text) {
    if (HIDDEN.test(letter)) {
      if (plain) out.push([plain, false]);
      plain = '';
      out.push([`U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`, true]);
    } else {
      plain += letter;
    }
  }
  if (plain) out.push([plain, false]);
  return out;
}

/** An untrusted text as nodes, with invisible characters made visible. */
export function visible(text, most = 20000) {
  const whole = String(text ?? '');
  const shown = document.createDocumentFragment();
  for (const [part, hidden] of pieces(whole.slice(0, most))) {
    shown.append(hidden ? h('span', { class: 'ctl' }, [part]) : document.createTextNode(part));
  }
  if (whole.length > most) shown.append(h('span', { class: 'soft' }, [` … ${whole.length - most} more characters`]));
  return shown;
}

/** The same in one string, for titles and labels. */
export const plainly = (text, most = 200) =>
  pieces(String(text ?? '').slice(0, most)).map(([part, hidden]) => (hidden ? `⟨${part}⟩` : part)).join('');

const MAY = /^(?:class|id|for|type|name|value|placeholder|title|href|rel|target|role|tabindex|hidden|disabled|checked|selected|rows|colspan|scope|max|width|height|src|alt|autocomplete|spellcheck|open|aria-[a-z]+|data-[a-z-]+)$/;

/** Makes an element. Strings among its children are shown as `visible` has it. */
export function h(tag, attributes = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on') && typeof value === 'function') made.addEventListener(name.slice(2), value);
    else if (!MAY.test(name)) throw new Error(`no attribute ${name}`);
    else if (name === 'href' && !isPlainLink(String(value))) continue;
    else made.setAttribute(name, value === true ? '' : plainly(value, 4000));
  }
  made.append(...[children].flat().filter(child => child !== null && child !== undefined && child !== false)
    .map(child => (child instanceof Node ? child : tag === 'span' && attributes.class === 'ctl' ? document.createTextNode(child) : visible(child))));
  return made;
}

/** Links lead to the page's own views and to web addresses, and run nothing. */
const isPlainLink = href => href.startsWith('#') || /^https?:\/\/[^\s]*$/.test(href);

/** Makes an element of a drawing; only numbers, classes and plain labels go in. */
export function s(tag, attributes = {}, children = []) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...[children].flat().map(child => (child instanceof Node ? child : document.createTextNode(plainly(child)))));
  return made;
}

/** Puts nodes in the place of all that an element holds. */
export const fill = (element, ...children) => element.replaceChildren(...children.flat().filter(Boolean)
  .map(child => (child instanceof Node ? child : visible(child))));

/** Like `fill`, for refreshes: focus on an element with a `data-key` is restored,
 *  and nothing is replaced during input. */
export function renew(element, ...children) {
  const at = element.contains(document.activeElement) ? document.activeElement : null;
  if (at?.matches('input, textarea, select')) return;
  fill(element, ...children);
  if (at) [...element.querySelectorAll('[data-key]')].find(one => one.dataset.key === at.dataset.key)?.focus({ preventScroll: true });
}

export const chip = (word, kind = String(word).toLowerCase()) => h('span', { class: `chip ${/^[a-z_]+$/.test(kind) ? kind : ''}` }, [String(word).toLowerCase()]);

export const empty = (title, ...rest) => h('div', { class: 'empty' }, [h('strong', {}, [title]), ...rest]);

export const head = (title, text, ...more) => h('div', { class: 'head' }, [h('h1', {}, [title]), h('p', {}, [text]), ...more]);

/** A table; on a phone each row is a card. `columns`: [label, cell of a row, class]. */
export function table(caption, columns, rows) {
  const cells = row => columns.map(([label, cell, kind]) => h('td', { class: kind, 'data-label': label }, [h('div', {}, cell(row))]));
  return h('div', { class: 'scroll' }, [h('table', { class: 'cards', 'aria-label': caption }, [
    h('thead', {}, [h('tr', {}, columns.map(([label, , kind]) => h('th', { scope: 'col', class: kind }, [label])))]),
    h('tbody', {}, rows.map(row => h('tr', {}, cells(row)))),
  ])]);
}

export const facts = pairs => h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
  .flatMap(([name, value]) => [h('dt', {}, [name]), h('dd', {}, [value])]));

let fading;
/** Shows a short message. */
export function toast(text) {
  const place = document.getElementById('toast');
  place.textContent = plainly(text, 300);
  place.classList.add('on');
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove('on'), 3500);
}

/** A button that copies a text. */
export const copier = (text, label = 'Copy') => h('button', {
  type: 'button',
  onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast('copied');
    } catch {
      toast('not permitted by the browser: select and copy manually');
    }
  },
}, [label]);

/** A confirmation dialog; resolves to whether it was confirmed. */
export function sure(title, text, yes, kind = 'primary') {
  return new Promise(resolve => {
    const answer = value => () => dialog.close(value);
    const dialog = h('dialog', { 'aria-label': title }, [
      h('h2', {}, [title]), h('p', {}, [text]),
      h('div', { class: 'row' }, [
        h('button', { type: 'button', onclick: answer('') }, ['Cancel']),
        h('button', { type: 'button', class: kind, onclick: answer('yes') }, [yes]),
      ]),
    ]);
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const number = new Intl.NumberFormat('en');
export const count = value => number.format(value ?? 0);
export const clock = time => new Date(time).toLocaleTimeString('en-GB', { hour12: false });
export function ago(unix, now = Date.now() / 1000) {
  if (!unix) return 'never';
  const seconds = Math.max(0, Math.round(now - unix));
  return seconds < 2 ? 'now' : `${span(seconds)} ago`;
}
export function span(seconds) {
  for (const [size, name] of [[86400, 'd'], [3600, 'h'], [60, 'min']]) if (seconds >= size) return `${Math.floor(seconds / size)} ${name}`;
  return `${Math.floor(seconds)} s`;
}
export const micros = us => (us === null || us === undefined ? '–' : us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(us < 10000 ? 1 : 0)} ms`);
