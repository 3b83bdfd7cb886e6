/* SPDX-License-Identifier: MIT */

/* Keys, fields, the head; the start. */

let searchTimer;
document.addEventListener('input', (event) => {
  if (view && view.typing) view.typing(event.target);
  if (!event.target.matches('[data-type="search"]') || !view.search) return;
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => view.search(event.target.value), 120);
});

document.addEventListener('submit', (event) => {
  const name = event.target.dataset.form;
  if (!name) return;
  event.preventDefault();
  view.forms[name](Object.fromEntries(new FormData(event.target)), event.target);
});

function moveRow(by) {
  const links = [...main.querySelectorAll('tbody tr a, tbody tr.plain')];
  const rows = [...new Set(links.map((link) => link.closest('tr')))];
  const at = rows.indexOf(document.activeElement.closest &&
    document.activeElement.closest('tr'));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (next) next.querySelector('a').focus();
}

let first = '';
const jumps = {t: '#/', w: '#/workers', n: '#/nodes'};
const keys = {
  '/': () => byId('search') && byId('search').focus(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  n: () => view.does && view.does.next && view.does.next(),
  p: () => view.does && view.does.previous && view.does.previous(),
  u: () => { if (view.up) goTo(view.up); },
  '?': showKeys,
};

function onTabKey(event) {
  const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  const tab = event.target.closest('[role="tab"]');
  if (!by || !tab) return false;
  const tabs = [...tab.parentNode.children];
  const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
  view.does.tab(next.dataset.with);
  next.focus();
  return true;
}

document.addEventListener('keydown', (event) => {
  const isField = event.target.matches('input:not([type="checkbox"]), select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey || byId('dialog').open)
    return;
  if (event.key === 'Escape' && isField) return event.target.blur();
  if (isField || onTabKey(event)) return;
  if (first === 'g' && jumps[event.key]) {
    location.hash = jumps[event.key];
    first = '';
    return;
  }
  first = event.key;
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

const SCHEMES = [['', '◐', 'Automatic'], ['light', '☀', 'Light'],
  ['dark', '☾', 'Dark']];
function showScheme() {
  const now = document.documentElement.dataset.scheme || '';
  const [, sign, name] = SCHEMES.find(([scheme]) => scheme === now);
  byId('scheme').replaceChildren(sign, h('span', {class: 'word'}, ' ' + name));
  byId('scheme').setAttribute('aria-label', `Colours: ${name}. Change them`);
  byId('scheme').title = `Colours: ${name}`;
}
function setScheme(scheme) {
  if (scheme) document.documentElement.dataset.scheme = scheme;
  else delete document.documentElement.dataset.scheme;
  showScheme();
}
byId('scheme').addEventListener('click', () => {
  const now = document.documentElement.dataset.scheme || '';
  const at = SCHEMES.findIndex(([scheme]) => scheme === now);
  const [next] = SCHEMES[(at + 1) % SCHEMES.length];
  setScheme(next);
  try {
    localStorage.setItem('scheme', next);
  } catch { /* it is not kept */ }
});
byId('keys').addEventListener('click', showKeys);
byId('logout').addEventListener('click', async () => {
  try {
    await ask('logout', {method: 'POST'});
    keepKey('');
    showLogin();
  } catch (error) {
    say(`You are still logged in: ${error.message}`, true);
  }
});

async function start() {
  try {
    const session = await get('api/session');
    mayAct = session.may_act;
    byId('logout').hidden = !session.may_read || !sessionKey();
    if (!session.may_read) {
      main.replaceChildren();
      return showLogin();
    }
  } catch { /* the view says why */ }
  return go();
}

try {
  setScheme(localStorage.getItem('scheme') || '');
} catch {
  setScheme('');
}
addEventListener('hashchange', go);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && view) refresh();
});
start();
