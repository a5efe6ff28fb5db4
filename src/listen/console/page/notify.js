// Desktop notifications of approval requests while the console's tab is hidden.

import { plainly, toast } from './dom.js';

const known = new Set();
let first = true;

const there = () => 'Notification' in window;

/** Whether notifications are permitted; requests are then polled while the page is hidden, too. */
export const allowed = () => there() && Notification.permission === 'granted';

/** The button that requests permission; hidden once that was answered. */
export function offer(button) {
  const show = () => { button.hidden = !there() || Notification.permission !== 'default'; };
  button.addEventListener('click', async () => {
    const answer = await Notification.requestPermission();
    toast(answer === 'granted' ? 'approval requests will be shown as desktop notifications while this page is hidden' : 'the browser does not allow notifications');
    show();
  });
  show();
}

/** Shows new requests while the page is hidden. Notification texts are plain text. */
export function show(all) {
  const fresh = all.filter(one => !known.has(one.id));
  known.clear();
  for (const one of all) known.add(one.id);
  if (first || !document.hidden || !allowed()) {
    first = false;
    return;
  }
  for (const one of fresh.slice(0, 3)) {
    const body = `${plainly(one.agent, 60)} calls ${plainly(one.tool, 80)} of ${plainly(one.upstream, 60)}: ${plainly(one.title, 120)}`;
    const shown = new Notification('lychgate: approval requested', { body, tag: one.id });
    shown.addEventListener('click', () => {
      window.focus();
      location.hash = '#/approvals';
      shown.close();
    });
  }
}
