// Desktop notifications of approval requests, for whoever has the console open in a tab that is not looked at.

import { plainly, toast } from './dom.js';

const known = new Set();
let first = true;

const there = () => 'Notification' in window;

/** Whether they are allowed. Then requests are looked for while the page is hidden, too. */
export const allowed = () => there() && Notification.permission === 'granted';

/** Keeps a button that asks for the permission; it is gone once that was answered. */
export function offer(button) {
  const show = () => { button.hidden = !there() || Notification.permission !== 'default'; };
  button.addEventListener('click', async () => {
    const answer = await Notification.requestPermission();
    toast(answer === 'granted' ? 'approval requests are shown on the desktop while this page is hidden' : 'the browser does not allow notifications');
    show();
  });
  show();
}

/** Shows the requests that are new, if nobody looks at the page. Texts are texts: the browser makes no markup of them. */
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
