// At the console: by keyboard alone, on a phone, in the light and in the dark.
import { VIEWS, button, click, clean, faint, go, picture, press, read, reload, same, scheme, size, tool, until } from './console_page.mjs';
import { XSS } from './xss.mjs';

const focused = () => read('(one => [one.tagName, one.textContent?.trim() || one.getAttribute("aria-label") || one.id || one.labels?.[0]?.textContent, getComputedStyle(one).outlineStyle !== "none"])(document.activeElement)');

/** Tabs until what is focused fits; the stops on the way. */
async function tabTo(fits, most = 400) {
  const stops = [];
  while (stops.length < most) {
    await press('Tab');
    stops.push(await focused());
    if (await read(fits)) return stops;
  }
  throw new Error(`${fits} was not reached: ${JSON.stringify(stops.slice(-5))}`);
}

export const tests = {
  'it works by keyboard alone': async () => {
    await go('live');
    await reload();
    await until('lines', 'document.querySelectorAll("#lines .line.block").length > 0');
    await read('document.activeElement.blur()');
    await press('?');
    await until('the list of keys', 'document.querySelector("dialog[open]")?.innerText.includes("next or previous line")');
    await picture('keys');
    await press('Escape');
    await until('no dialog', '!document.querySelector("dialog")');
    await press('j');
    await press('j');
    same('the second line', await read('[...document.querySelectorAll("#lines .line")].indexOf(document.activeElement)'), 1);
    same('one stop for all lines', await read('[...document.querySelectorAll("#lines .line")].filter(line => line.tabIndex === 0).length'), 1);
    await press('Enter');
    await until('details', 'document.activeElement?.id === "detail"');
    await press('Escape');
    same('back on its line', await read('[...document.querySelectorAll("#lines .line")].indexOf(document.activeElement)'), 1);
    await press('/');
    same('the search', await read('document.activeElement.id'), 'filter-text');
    await press('Escape');
    for (const [at, view] of VIEWS.entries()) {
      await press(String(at + 1));
      await until(view, `location.hash === "#/${view}" && document.querySelector("#tabs a[aria-current=page]")?.dataset.view === "${view}"`);
    }
  },
  'every view is reached and a finding opened with Tab and Enter': async () => {
    for (const view of VIEWS) {
      await read('document.activeElement.blur(), document.querySelector(".skip").focus()');
      const stops = await tabTo(`document.activeElement?.dataset?.view === "${view}"`, 20);
      await press('Enter');
      await until(view, `location.hash === "#/${view}"`);
      await until(`what is in ${view}`, '!document.querySelector("main").innerText.includes("Loading …")');
      for (let at = 0; at < 12; at += 1) {
        await press('Tab');
        stops.push(await focused());
      }
      same(`${view}: each stop has a name, and shows that it is one`, stops.filter(([tag, name, shown]) => tag !== 'BODY' && (!name || !shown)), []);
    }
    await go('live');
    // The explanation comes late, when the keyboard is on a link that it takes the place of.
    await read('(asked => { window.fetch = async (path, ...all) => { if (path.includes("/explain/")) await new Promise(go => { window.explains = go; }); return asked(path, ...all); }; window.asked = asked; })(window.fetch), undefined');
    await tabTo('document.activeElement?.classList.contains("line")');
    while (!(await read('document.activeElement.classList.contains("block")'))) await press('ArrowDown');
    await press('Enter');
    await until('the finding', 'document.querySelector("#detail .finding")');
    await tabTo('document.activeElement?.closest?.(".finding a")', 5);
    await read('window.fetch = window.asked, window.explains(), undefined');
    await until('the explanation', 'document.querySelector("#detail .finding mark")');
    same('the keyboard is where it was', await read('Boolean(document.activeElement.closest(".finding a"))'), true);
    await press('Enter');
    await until('its rule', 'location.hash.startsWith("#/rules/") && document.querySelector("main").innerText.includes("Must match")');
    await go('live');
    await press('Escape');
  },
  'it fits a phone': async () => {
    const asked = tool(`plain ${XSS}`, { note: `please-ask ${XSS}` });
    await size(360, 740, true);
    const fits = async what => {
      same(`${what} is as wide as the phone`, await read('[document.documentElement.scrollWidth, [...document.querySelectorAll("main *")].filter(one => one.checkVisibility() && !one.closest(".scroll, pre, svg, .line, .few") && one.getBoundingClientRect().right > 360.5).map(one => one.outerHTML.slice(0, 120))]'), [360, []]);
      await picture(`phone-${what}`);
    };
    for (const view of VIEWS) {
      await go(view);
      await fits(view);
    }
    await go('rules/asks-first');
    await until('the rule', 'document.querySelector("main").innerText.includes("Must match")');
    await fits('rule');
    await go('quarantine');
    await read(`${button('#quarantine', 'Show')}.click()`);
    await until('the message', 'document.querySelector("#kept pre")');
    await fits('quarantine-shown');
    await go('live');
    await click('#lines .line.block');
    await until('details', 'document.querySelector("#detail .finding mark")');
    await fits('finding');
    await press('Escape');
    await go('approvals');
    await read(`${button('.question', 'Refuse')}.click()`);
    await asked;
    await size(1280, 820);
  },
  'its texts stand out in the light and in the dark, which follows the system until somebody says otherwise': async () => {
    for (const theme of ['dark', 'light']) {
      await scheme(theme);
      await until(theme, `document.documentElement.dataset.theme === "${theme}"`);
      for (const view of VIEWS) {
        await go(view);
        same(`${theme} ${view}`, await faint(), []);
        if (theme === 'dark') await picture(`dark-${view}`);
      }
      await go('live');
      await click('#lines .line.block');
      await until('details', 'document.querySelector("#detail .finding mark")');
      same(`${theme} finding`, await faint(), []);
      if (theme === 'dark') await picture('dark-finding');
      await press('Escape');
    }
    await read('localStorage.setItem("looked-at", "1"), document.querySelectorAll("#lines .line")[0].focus()');
    await press('t');
    same('switched', await read('document.documentElement.dataset.theme'), 'dark');
    await reload();
    await until('it stays so', 'document.documentElement.dataset.theme === "dark" && document.querySelector("#app")?.hidden === false');
    await clean('after all');
  },
};
