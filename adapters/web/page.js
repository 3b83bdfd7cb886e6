/* SPDX-License-Identifier: MIT */

/* The page of weir web. It asks /api (docs/web.md) for what is shown, each
 * second while somebody looks, and builds all of it from text: nothing that
 * comes from a server is ever read as HTML.
 *
 *   #/                     topics          #/t/TOPIC/STATE    jobs of a topic
 *   #/workers  #/nodes                     #/j/TOPIC/ID       one job */
'use strict';

const STATES = ['scheduled', 'ready', 'running', 'dead'];
const LATE_MS = 10000, VERY_LATE_MS = 60000;
const PAGE = 100;

/* --- building ------------------------------------------------------------- */

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  for (const child of children.flat(9))
    if (child != null && child !== false) node.append(child);
  return node;
}
const h = (tag, props, ...children) =>
  fill(document.createElement(tag), props, children);
const s = (tag, props, ...children) =>
  fill(document.createElementNS(SVG, tag), props, children);
const byId = (id) => document.getElementById(id);

/* Characters that are not seen, or turn what is around them, as escapes. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = (text) => String(text).replace(UNSEEN, (c) =>
  '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

/* Foreign text, apart from the direction of its neighbours. */
const foreign = (text, cls) => h('bdi', {class: cls}, visible(text));

/* Put `next` where `old` stands unless they are the same, so that what has the
 * focus or a selection stays. */
function patch(old, next) {
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) {
    old.replaceWith(next);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  if (next.fresh) { /* it has handlers that know what is new */
    old.replaceWith(next);
    return;
  }
  for (const {name} of [...old.attributes])
    if (!next.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const {name, value} of [...next.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  patchChildren(old, next);
}

/* Children with data-key are matched by it, others by their place. */
function patchChildren(old, next) {
  const keyed = new Map();
  for (const child of old.children)
    if (child.dataset && child.dataset.key) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const child of [...next.childNodes]) {
    const key = child.dataset && child.dataset.key;
    const same = key ? keyed.get(key) : at;
    if (!same || (!key && same.dataset && same.dataset.key)) {
      old.insertBefore(child, at);
      continue;
    }
    if (same !== at) old.insertBefore(same, at);
    const behind = same.nextSibling;
    patch(same, child);
    at = behind;
  }
  while (at) {
    const behind = at.nextSibling;
    at.remove();
    at = behind;
  }
}

/* --- what is said of numbers and times ------------------------------------ */

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const short = new Intl.NumberFormat('en',
  {notation: 'compact', maximumFractionDigits: 1});

function rateText(rate) {
  if (rate == null) return '–';
  return (rate >= 100 ? whole.format(rate) : rate >= 10 ? rate.toFixed(0) :
    rate > 0 ? rate.toFixed(1) : '0') + '/s';
}

function spanText(ms) {
  if (ms == null) return '–';
  if (ms < 1) return ms.toFixed(1) + ' ms';
  if (ms < 1000) return ms.toFixed(0) + ' ms';
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + ' s';
  if (ms < 3600000)
    return Math.floor(ms / 60000) + ' min ' +
      Math.floor(ms / 1000) % 60 + ' s';
  if (ms < 86400000 * 2)
    return Math.floor(ms / 3600000) + ' h ' +
      Math.floor(ms / 60000) % 60 + ' min';
  return Math.floor(ms / 86400000) + ' days';
}

function sizeText(bytes) {
  if (bytes == null) return '–';
  return bytes < 1024 ? bytes + ' B'
    : bytes < 1048576 ? (bytes / 1024).toFixed(1) + ' KiB'
    : bytes < 1073741824 ? (bytes / 1048576).toFixed(1) + ' MiB'
    : (bytes / 1073741824).toFixed(1) + ' GiB';
}

const two = (n) => String(n).padStart(2, '0');

/* The reader's zone, and UTC under it. */
function timeNode(ms) {
  if (ms == null) return h('span', {class: 'quiet'}, '–');
  const date = new Date(ms);
  const utc = isNaN(date) ? '?' : date.toISOString();
  const here = isNaN(date) ? String(ms)
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-` +
      `${two(date.getDate())} ${two(date.getHours())}:` +
      `${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return h('time', {datetime: utc},
    h('span', {class: 'here'}, here),
    h('span', {class: 'utc'}, utc.replace('T', ' ').replace('Z', ' UTC')));
}

/* How long the first ready job waits, in words and with a shape. */
function ageNode(ms) {
  if (ms == null) return h('span', {class: 'quiet'}, '–');
  if (ms < LATE_MS) return h('span', {}, spanText(ms));
  const isBad = ms >= VERY_LATE_MS;
  return h('span', {class: isBad ? 'bad' : 'warn'},
    isBad ? '◆ ' : '▲ ', spanText(ms),
    h('span', {class: 'hidden-text'}, isBad ? ', very late' : ', late'));
}

/* --- states --------------------------------------------------------------- */

function shape(state) {
  const inner = {
    scheduled: () => s('circle', {cx: 6, cy: 6, r: 4.6}),
    ready: () => s('circle', {cx: 6, cy: 6, r: 5.4}),
    running: () => s('path', {d: 'M2 1 11 6 2 11Z'}),
    dead: () => s('path', {d: 'M2 2 10 10M10 2 2 10'}),
  }[state]();
  return s('svg', {viewBox: '0 0 12 12', class: 'shape s-' + state,
    'aria-hidden': 'true'}, inner);
}

/* ready is a lower bound where it is not exact. */
function countText(row, state, format) {
  return format.format(row[state] || 0) +
    (state === 'ready' && row.ready_is_exact === false ? '+' : '');
}

function stateBar(row) {
  const total = STATES.reduce((sum, state) => sum + (row[state] || 0), 0);
  const svg = s('svg', {class: 'statebar', 'aria-hidden': 'true'},
    s('rect', {width: '100%', height: 9, class: 'bar-none'}));
  /* what is there is seen, be it one of a million */
  const wide = STATES.map((state) => row[state] > 0
    ? Math.max(1.2, 100 * row[state] / total) : 0);
  const scale = 100 / Math.max(100, wide.reduce((sum, w) => sum + w, 0));
  let x = 0;
  STATES.forEach((state, i) => {
    if (!wide[i]) return;
    svg.append(s('rect', {x: x.toFixed(2) + '%', height: 9,
      width: (wide[i] * scale).toFixed(2) + '%',
      ...(state === 'ready' ? {class: 'bar-ready'}
        : {fill: `url(#p-${state})`})}));
    x += wide[i] * scale;
  });
  return svg;
}

const counts = (row) => h('div', {class: 'counts'}, STATES.map((state) =>
  h('span', {class: row[state] ? null : 'zero',
    title: whole.format(row[state] || 0) + ' ' + state},
  shape(state), countText(row, state, short), ' ' + state)));

const badges = (row) => [
  h('span', {class: 'badge'}, row.kind || 'unknown'),
  row.paused && h('span', {class: 'badge warn'}, '❚❚ paused'),
  row.away && h('span', {class: 'badge bad'}, '▲ away'),
  row.lease_ended_ms >= LATE_MS && h('span', {class: 'badge bad'},
    `▲ lease ended ${spanText(row.lease_ended_ms)} ago`),
];

/* --- plots ---------------------------------------------------------------- */

/* Path of a line over `points`, with gaps where nothing is known; of the area
 * under it where `isArea`. */
function path(points, top, width, height, isArea) {
  const step = width / (points.length - 1);
  let text = '', began = null;
  const x = (i) => (i * step).toFixed(1);
  const close = (i) => {
    if (isArea && began !== null)
      text += `L${x(i - 1)} ${height}L${x(began)} ${height}Z`;
    began = null;
  };
  points.forEach((value, i) => {
    if (value == null) return close(i);
    text += (began === null ? 'M' : 'L') + x(i) + ' ' +
      (height - height * Math.min(1, value / top)).toFixed(1);
    if (began === null) {
      began = i;
      if (points[i + 1] == null) text += 'h' + step.toFixed(1);
    }
  });
  close(points.length);
  return text;
}

const most = (points) => points.reduce((m, v) => v > m ? v : m, 0);

function spark(points, label, format) {
  if (!points || points.every((value) => value == null))
    return s('svg', {class: 'spark none', viewBox: '0 0 110 26', role: 'img',
      'aria-label': label + ': nothing measured yet'},
    s('line', {x1: 0, y1: 25, x2: 110, y2: 25}));
  const top = most(points) || 1;
  return s('svg', {class: 'spark', viewBox: '0 0 110 26', role: 'img',
    'aria-label': `${label} of the last hour, at most ${format(top)}`},
  s('path', {class: 'area', d: path(points, top, 110, 25, true)}),
  s('path', {d: path(points, top, 110, 25, false)}));
}

function plot(title, points, format, now) {
  const known = (points || []).filter((value) => value != null);
  const top = most(known) || 1;
  const svg = s('svg', {viewBox: '0 0 600 120', preserveAspectRatio: 'none',
    role: 'img', 'aria-label': known.length === 0
      ? title + ': nothing measured yet'
      : `${title}, last hour: ${known.length} points, at most ${format(top)}`});
  for (const y of [1, 40, 80, 119])
    svg.append(s('line', {class: 'grid', x1: 0, x2: 600, y1: y, y2: y}));
  if (known.length > 0)
    svg.append(
      s('path', {class: 'area', d: path(points, top, 600, 118, true)}),
      s('path', {class: 'line', d: path(points, top, 600, 118, false)}));
  return h('figure', {class: 'plot'},
    h('figcaption', {}, h('b', {}, title),
      h('span', {}, 'now ', format(now), known.length > 0
        ? ` · most ${format(most(known))}` : ' · nothing measured yet')),
    svg,
    h('div', {class: 'axis', 'aria-hidden': 'true'},
      h('span', {}, '1 h ago'), h('span', {}, '30 min'), h('span', {}, 'now')));
}

/* --- asking --------------------------------------------------------------- */

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/* Numbers keep their digits, be they beyond what JavaScript counts with. */
function parseExactly(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) =>
    typeof value === 'number' && context && String(value) !== context.source &&
      !Number.isSafeInteger(value) ? JSON.rawJSON(context.source) : value);
}

async function ask(path, options, read = (text) => JSON.parse(text)) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused(0, 'weir web does not answer');
  }
  const text = await response.text();
  if (response.ok) return text === '' ? {} : read(text);
  let why = `${response.status} ${response.statusText}`;
  try {
    why = JSON.parse(text).error || why;
  } catch { /* it is no JSON: a proxy in front */ }
  throw new Refused(response.status, why);
}

const get = (path) => ask(path);
const post = (path, body) => ask(path, {method: 'POST',
  headers: {'Content-Type': 'application/json'},
  body: JSON.stringify(body || {})});
const topicPath = (topic) => 'api/topics/' + encodeURIComponent(topic);
const jobPath = (topic, id) =>
  topicPath(topic) + '/jobs/' + encodeURIComponent(id);
const query = (values) => '?' + new URLSearchParams(
  Object.entries(values).filter(([, value]) => value !== '' && value != null));

/* --- saying and asking the reader ----------------------------------------- */

let saidTimer;
function say(text, isBad) {
  byId('said').replaceChildren(h('p', {class: isBad ? 'bad' : null},
    visible(text)));
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => byId('said').replaceChildren(),
    isBad ? 9000 : 4000);
}

/* Do what a button says, then show what became of it. */
async function act(path, body, done) {
  try {
    const result = await post(path, body);
    say(typeof done === 'function' ? done(result) : done);
    await refresh();
    return result;
  } catch (error) {
    say(error.message, true);
    return null;
  }
}

/* A dialog; resolves with its fields, or null when it was left. */
function question(title, content, verb, isDanger) {
  const dialog = byId('dialog');
  return new Promise((resolve) => {
    let answer = null;
    const form = h('form', {onsubmit: (event) => {
      event.preventDefault();
      answer = Object.fromEntries(new FormData(form));
      dialog.close();
    }}, content, h('div', {class: 'buttons'},
      h('button', {type: 'button', onclick: () => dialog.close()}, 'Cancel'),
      h('button', {class: isDanger ? 'danger' : 'main'}, verb)));
    dialog.replaceChildren(h('h2', {id: 'dialog-title'}, title), form);
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}

function showKeys() {
  const dialog = byId('dialog');
  const rows = [['/', 'search'], ['j  k', 'next, previous row'],
    ['Enter', 'open the row'], ['n  p', 'next, previous page'],
    ['g t', 'topics'], ['g w', 'workers'], ['g n', 'nodes'],
    ['u', 'one level up'], ['Esc', 'close, leave a field'], ['?', 'these keys']];
  dialog.replaceChildren(h('h2', {id: 'dialog-title'}, 'Keys'),
    h('div', {class: 'keys'}, rows.map(([key, what]) =>
      [h('span', {}, key.split('  ').map((k) => [h('kbd', {}, k), ' '])),
        h('span', {}, what)])),
    h('div', {class: 'buttons'}, h('button', {type: 'button', class: 'main',
      onclick: () => dialog.close()}, 'Close')));
  dialog.onclose = null;
  dialog.showModal();
}

/* --- the view ------------------------------------------------------------- */

const main = byId('main');
let view = null, mayAct = false, timer = null, turn = 0;

/* Show `nodes` in the place of what is shown. */
function show(...nodes) {
  patchChildren(main, h('main', {}, ...nodes));
}

function showState(told) {
  const state = byId('state');
  const isOk = told && told.server === 'ok';
  state.className = isOk ? '' : 'away';
  state.replaceChildren(isOk ? '● live'
    : told && told.server ? `▲ ${told.server}; as of ` : '▲ ',
  !isOk && told && told.taken_ms ? timeNode(told.taken_ms) : '',
  !isOk && told && told.error ? visible(told.error) : '');
}

/* What the address asks for. */
function route() {
  const parts = location.hash.replace(/^#\/?/, '').split('/')
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  if (parts[0] === 't' && parts[1]) return topicView(parts[1], parts[2]);
  if (parts[0] === 'j' && parts[1] && parts[2])
    return jobView(parts[1], parts[2]);
  if (parts[0] === 'workers') return workersView();
  if (parts[0] === 'nodes') return nodesView();
  return topicsView();
}
const topicLink = (topic, state) => '#/t/' + encodeURIComponent(topic) +
  (state ? '/' + state : '');
const jobLink = (topic, id) =>
  `#/j/${encodeURIComponent(topic)}/${encodeURIComponent(id)}`;

async function refresh() {
  const mine = ++turn, which = view;
  clearTimeout(timer);
  try {
    await which.load();
    if (mine !== turn || which !== view) return;
    show(which.render());
    showState(which.told || {server: 'ok'});
    main.removeAttribute('aria-busy');
  } catch (error) {
    if (mine !== turn || which !== view) return;
    if (error.status === 401) return showLogin();
    if (!(error instanceof Refused)) console.error(error);
    showState({error: error.message});
    if (error.status >= 400 && error.status < 500)
      show(h('p', {class: 'problem', role: 'alert'}, visible(error.message)),
        h('p', {}, h('a', {href: '#/'}, 'All topics')));
  }
  timer = setTimeout(refresh, document.hidden ? 30000 : which.every || 1000);
}

function go() {
  view = route();
  main.setAttribute('aria-busy', 'true');
  document.title = view.title ? view.title + ' · weir' : 'weir';
  for (const link of document.querySelectorAll('nav a'))
    if (link.dataset.view === view.tab) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  main.replaceChildren(h('p', {class: 'empty'}, 'Reading …'));
  refresh();
}

function showLogin(why) {
  show(h('form', {class: 'panel login', onsubmit: async (event) => {
    event.preventDefault();
    try {
      await ask('login', {method: 'POST',
        headers: {'Content-Type': 'text/plain'},
        body: new FormData(event.target).get('token')});
      await start();
    } catch (error) {
      showLogin(error.status === 401 ? 'This is not the token.'
        : error.message);
    }
  }},
  h('h1', {}, 'Log in'),
  h('p', {class: 'quiet'},
    'The token is the first line of the file that weir web was given.'),
  why && h('p', {class: 'bad', role: 'alert'}, why),
  h('label', {class: 'field'}, 'Token', h('input', {type: 'password',
    name: 'token', autocomplete: 'current-password', required: true})),
  h('button', {class: 'main'}, 'Log in')));
  main.querySelector('input').focus();
  showState({error: 'not logged in'});
}

const readOnly = () => !mayAct && h('p', {class: 'notice'},
  'Read only: weir web was started without a token, or with --read-only.');

/* A table whose rows become cards where there is no room. Columns have name,
 * cls, cell(row), and sort: what the server calls it. */
function table(caption, columns, rows, key, sorting) {
  const head = columns.map((column) => {
    const isSorted = sorting && column.sort && sorting.sort === column.sort;
    return h('th', {scope: 'col', class: column.cls, 'aria-sort': isSorted
      ? (sorting.order === 'up' ? 'ascending' : 'descending') : null},
    column.sort ? h('button', {type: 'button', 'data-sort': column.sort},
      column.name, isSorted ? (sorting.order === 'up' ? ' ▴' : ' ▾') : '')
      : column.name);
  });
  return h('table', {class: 'cards'},
    h('caption', {class: 'hidden-text'}, caption),
    h('thead', {}, h('tr', {}, head)),
    h('tbody', {}, rows.map((row) => h('tr', {'data-key': key(row)},
      columns.map((column) => h('td', {class: column.cls,
        'data-name': column.bare ? null : column.name},
      column.bare ? column.cell(row)
        : h('div', {class: 'cell'}, column.cell(row))))))));
}

const tile = (name, value, state) => h('div', {class: 'tile'},
  h('div', {class: 'name'}, state && shape(state), name),
  h('div', {class: 'value'}, value));

const facts = (rows) => h('dl', {class: 'facts'}, rows
  .filter((row) => row && row[1] != null && row[1] !== '' && row[1] !== false)
  .map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));

/* Buttons are found by what they do, so that a row that is patched needs no
 * new handlers: view.does[WORD](value, button). */
document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-do]');
  if (button && view && view.does && view.does[button.dataset.do])
    view.does[button.dataset.do](button.dataset.with, button);
  const sort = event.target.closest('[data-sort]');
  if (sort && view && view.sortBy) view.sortBy(sort.dataset.sort);
});
document.addEventListener('change', (event) => {
  const does = event.target.dataset.change;
  if (does && view && view.does[does])
    view.does[does](event.target.value, event.target);
});
const button = (text, does, value, cls, props) => h('button', {type: 'button',
  'data-do': does, 'data-with': value, class: cls, disabled: !mayAct,
  ...props}, text);

function pages(hasPrevious, hasNext, text) {
  return h('div', {class: 'pages'}, h('span', {class: 'quiet small'}, text),
    button('‹ Previous', 'previous', '', null, {disabled: !hasPrevious}),
    button('Next ›', 'next', '', null, {disabled: !hasNext}));
}

async function pause(topic, isPaused) {
  await act(topicPath(topic) + (isPaused ? '/pause' : '/resume'), {},
    `${topic} is ${isPaused ? 'paused: workers claim no more of it' : 'resumed'}`);
}

const pauseButton = (row, cls) => row.paused
  ? button('Resume', 'resume', row.topic, cls,
    {'aria-label': 'Resume ' + row.topic})
  : button('Pause', 'pause', row.topic, cls,
    {'aria-label': 'Pause ' + row.topic});

/* --- topics --------------------------------------------------------------- */

/* Kept while other views are shown. */
const topicsSeen = {q: '', sort: 'topic', order: '', offset: 0};

function historyOf(self, names) {
  const wanted = names.join(',');
  if (!wanted || (wanted === self.historyFor && Date.now() < self.historyUntil))
    return;
  self.historyFor = wanted;
  self.historyUntil = Date.now() + 15000;
  get('api/history' + query({topics: wanted})).then((told) => {
    self.history = told.topics;
    if (view === self && self.told) show(self.render());
  }, () => { self.historyUntil = 0; });
}

function topicsView() {
  const seen = topicsSeen;
  const self = {tab: 'topics', title: '', history: {}};
  const change = (values) => {
    Object.assign(seen, {offset: 0}, values);
    return refresh();
  };
  const columns = [
    {name: 'Topic', cls: 'name', sort: 'topic', bare: true, cell: (row) => [
      h('a', {href: topicLink(row.topic)}, foreign(row.topic)),
      h('div', {class: 'under'}, badges(row))]},
    {name: 'Jobs', cls: 'states', sort: 'ready', bare: true, cell: (row) =>
      row.away ? '' : [stateBar(row), counts(row)]},
    {name: 'Oldest ready', cls: 'num', sort: 'oldest', cell: (row) =>
      ageNode(row.oldest_ms)},
    {name: 'Rate', sort: 'rate', cell: (row) => h('div', {class: 'measure'},
      spark((self.history[row.topic] || {}).rate, 'Rate', rateText),
      h('span', {}, rateText(row.rate)))},
    {name: 'Lateness p99', sort: 'p99', cell: (row) =>
      h('div', {class: 'measure'},
        spark((self.history[row.topic] || {}).lateness_ms, 'Lateness',
          spanText),
        h('span', {}, spanText((row.lateness_ms || {}).p99)))},
    {name: '', bare: true, cell: (row) => mayAct && pauseButton(row, 'tight')},
  ];
  self.load = async () => {
    self.told = await get('api/topics' + query({q: seen.q, offset: seen.offset,
      limit: PAGE, sort: seen.sort, order: seen.order}));
    historyOf(self, self.told.topics.map((row) => row.topic));
  };
  self.render = () => {
    const {told} = self, sums = told.sums, rows = told.topics;
    return [
      h('div', {class: 'title'}, h('h1', {}, 'Topics')),
      readOnly(),
      h('div', {class: 'tiles'},
        tile('topics', whole.format(sums.topics)),
        STATES.map((state) => tile(state, whole.format(sums[state]), state)),
        tile('done', rateText(sums.rate)),
        tile('oldest ready', ageNode(sums.oldest_ms)),
        sums.paused > 0 && tile('paused', whole.format(sums.paused))),
      h('div', {class: 'bar'},
        h('input', {type: 'search', id: 'search', 'data-type': 'search',
          placeholder: 'Part of a name  ( / )', 'aria-label': 'Search topics',
          autocomplete: 'off', spellcheck: 'false'}),
        h('label', {class: 'quiet small'}, 'Sort by ', h('select',
          {'data-change': 'sort'}, [['topic', 'name'], ['oldest', 'oldest ready'],
            ['ready', 'ready'], ['scheduled', 'scheduled'],
            ['running', 'running'], ['dead', 'dead'], ['rate', 'rate'],
            ['p99', 'lateness'], ['dropped', 'dropped']].map(([value, text]) =>
            h('option', {value, selected: seen.sort === value}, text))))),
      h('div', {class: 'panel'}, rows.length === 0
        ? h('p', {class: 'empty'}, !told.complete ? 'Reading the topics …'
          : seen.q ? 'No topic has this in its name.'
            : 'There are no topics yet. weir add TOPIC makes one.')
        : table('Topics', columns, rows, (row) => row.topic, seen)),
      pages(seen.offset > 0, seen.offset + PAGE < told.found,
        told.found === 0 ? '' : `${whole.format(seen.offset + 1)} to ${
          whole.format(seen.offset + rows.length)} of ${
          whole.format(told.found)}`),
    ];
  };
  self.search = (text) => change({q: text});
  self.searched = () => seen.q;
  self.sortBy = (sort) => change(sort === seen.sort
    ? {order: seen.order === 'up' ? '' : 'up'} : {sort, order: ''});
  self.does = {
    sort: (value) => change({sort: value, order: ''}),
    pause: (topic) => pause(topic, true),
    resume: (topic) => pause(topic, false),
    next: () => change({offset: seen.offset + PAGE}),
    previous: () => change({offset: Math.max(0, seen.offset - PAGE)}),
  };
  return self;
}

/* --- a topic -------------------------------------------------------------- */

const TOTALS = ['added', 'done', 'retried', 'failed', 'expired', 'crashed',
  'dropped'];

/* A moment that a reader put into a field, in the reader's zone. */
const momentOf = (text) => text ? new Date(text).getTime() : undefined;

const jobColumns = {
  id: {name: 'Id', cls: 'name', bare: true, cell: (job) =>
    h('a', {href: jobLink(job.topic, job.id)}, foreign(job.id, 'id'))},
  group: {name: 'Group', cell: (job) => foreign(job.group || '', 'id')},
  due: {name: 'Due', cell: (job) => timeNode(job.due_ms)},
  died: {name: 'Died', cell: (job) => timeNode(job.due_ms)},
  attempt: {name: 'Attempt', cls: 'num', cell: (job) => String(job.attempt)},
  why: {name: 'Reason', cls: 'text', cell: (job) =>
    [job.reason && h('b', {}, visible(job.reason)), job.reason && job.error &&
      ': ', job.error && foreign(job.error)]},
  error: {name: 'Last error', cls: 'text', cell: (job) =>
    job.error ? foreign(job.error) : ''},
  size: {name: 'Body', cls: 'num', cell: (job) => sizeText(job.body_bytes)},
};

function columnsOf(state, isBounded, picked) {
  const pick = {name: '', bare: true, cell: (job) => h('input', {
    type: 'checkbox', 'data-change': 'pick', value: job.id,
    'aria-label': 'Choose ' + visible(job.id), checked: picked.has(job.id)})};
  const {id, group, due, died, attempt, why, error, size} = jobColumns;
  return [
    state === 'dead' && mayAct && pick, id, isBounded && group,
    (state === 'scheduled' || state === 'ready') && due,
    state === 'dead' && died, attempt,
    state === 'dead' ? why : error, size].filter(Boolean);
}

/* What was looked for; the same text is kept while the reader types. */
function jobSearch(topic) {
  return h('form', {class: 'inline', 'data-form': 'open'},
    h('input', {type: 'search', id: 'search', name: 'id', maxlength: 128,
      placeholder: 'Id of a job  ( / )', 'aria-label': 'Id of a job in ' + topic,
      autocomplete: 'off', spellcheck: 'false'}),
    h('button', {}, 'Open'));
}

function groupsPanel(groups) {
  return h('div', {class: 'panel'},
    h('h2', {}, 'Why they died'),
    table('Dead jobs by reason', [
      {name: 'Reason', cls: 'text', bare: true, cell: (group) =>
        [h('b', {}, visible(group.reason || 'unknown')),
          group.error && [': ', foreign(group.error)]]},
      {name: 'Jobs', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'First', cell: (group) => timeNode(group.first_ms)},
      {name: 'Last', cell: (group) => timeNode(group.last_ms)},
      {name: '', bare: true, cell: (group) => mayAct && [
        button('Requeue', 'requeueGroup', group.key, 'tight'), ' ',
        button('Delete', 'deleteGroup', group.key, 'tight danger')]},
    ], groups.groups, (group) => group.key),
    !groups.complete && h('p', {class: 'notice'},
      `Of the oldest ${whole.format(groups.looked_at)} dead jobs.`),
    groups.others > 0 && h('p', {class: 'notice'},
      `${whole.format(groups.others)} more died in other ways.`));
}

const plural = (count, word) =>
  `${whole.format(count)} ${word}${count === 1 ? '' : 's'}`;

function topicView(topic, asked) {
  const tabs = STATES.concat('groups', 'options');
  const self = {tab: 'topics', title: topic, up: '#/', history: {},
    places: [''], picked: new Set()};
  const path = topicPath(topic);
  const isBounded = () => self.row && self.row.kind === 'bounded';
  const stateTab = () => STATES.includes(self.at);

  async function loadTab() {
    self.jobs = self.options = self.groups = null;
    self.filterError = '';
    if (stateTab())
      self.jobs = await get(path + '/jobs' + query({state: self.at,
        after: self.places.at(-1), limit: PAGE, where: self.where}))
        .catch((error) => {
          if (error.status !== 400) throw error;
          self.filterError = error.message;
          return null;
        });
    if (self.at === 'options') self.options = (await get(path + '/options')).options;
    if (self.at === 'dead' && self.places.length === 1 && self.row.dead > 0)
      self.groups = await get(path + '/groups');
    if (self.at === 'groups') self.groups = await get(path + '/groups?by=group');
  }

  self.load = async () => {
    self.told = await get(path);
    self.row = self.told.topic;
    if (!self.at)
      self.at = tabs.includes(asked) ? asked
        : STATES.find((state) => state === 'ready' && self.row.ready > 0) ||
          STATES.find((state) => self.row[state] > 0) || 'ready';
    const isDue = !self.tabRead || Date.now() - self.tabRead > 2000;
    if (isDue || self.isChanged) {
      self.isChanged = false;
      await loadTab();
      self.tabRead = Date.now();
    }
    historyOf(self, [topic]);
  };

  function tabPanel() {
    if (self.at === 'options') return optionsPanel(self.options || {});
    if (self.at === 'groups') return eventsPanel(self.groups);
    const jobs = (self.jobs ? self.jobs.jobs : [])
      .map((job) => ({...job, topic}));
    return [
      h('div', {class: 'bar'}, jobSearch(topic), whereSearch(self),
        h('span', {class: 'grow'}),
        self.at === 'dead' && mayAct && self.row.dead > 0 && [
          self.picked.size > 0 && [
            button(`Requeue ${self.picked.size} chosen`, 'requeuePicked', ''),
            button(`Delete ${self.picked.size} chosen`, 'deletePicked', '',
              'danger')],
          button('Requeue …', 'requeueMany', '', 'main'),
          button('Delete …', 'deleteMany', '', 'danger')]),
      self.jobs && self.jobs.failed > 0 && h('p', {class: 'notice'},
        `The filter failed on ${plural(self.jobs.failed, 'job')}.`),
      self.filterError && h('p', {class: 'problem', role: 'alert'},
        visible(self.filterError)),
      self.groups && self.groups.groups.length > 0 && groupsPanel(self.groups),
      h('div', {class: 'panel'}, jobs.length === 0
        ? h('p', {class: 'empty'}, self.where
          ? `No job here that is ${self.at} matches` + (self.jobs &&
            self.jobs.next ? ' on this page: see the next one.' : '.')
          : `No job is ${self.at}.`)
        : table(`Jobs that are ${self.at}`,
          columnsOf(self.at, isBounded(), self.picked), jobs,
          (job) => 'j' + job.id)),
      pages(self.places.length > 1, Boolean(self.jobs && self.jobs.next),
        jobs.length ? `Page ${self.places.length}` : ''),
    ];
  }

  self.render = () => {
    const {row} = self;
    if (row.away)
      return [h('h1', {}, foreign(topic)), h('p', {class: 'problem'},
        'The node that has this topic does not answer.')];
    const hour = self.history[topic] || {};
    const late = row.lateness_ms || {};
    return [
      h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Topics')),
      h('div', {class: 'title'}, h('h1', {}, foreign(topic)), badges(row),
        mayAct && h('div', {class: 'actions'}, pauseButton(row))),
      readOnly(),
      h('div', {class: 'tiles'},
        STATES.map((state) => tile(state, countText(row, state, whole), state)),
        tile('oldest ready', ageNode(row.oldest_ms)),
        row.relaying > 0 && tile('relaying', whole.format(row.relaying)),
        row.dropped && [['overflow', 'dropped, full'], ['age', 'dropped, old'],
          ['ttl', 'dropped, idle']].map(([why, name]) =>
          tile(name, short.format(row.dropped[why])))),
      h('p', {class: 'totals'}, 'Since it exists: ', TOTALS.map((name, i) =>
        [i > 0 && ' · ', h('b', {}, whole.format(row[name + '_total'])), ' ',
          name])),
      h('div', {class: 'plots'},
        plot('Done', hour.rate, rateText, row.rate),
        plot('Lateness p99', hour.lateness_ms, spanText, late.p99)),
      h('div', {role: 'tablist', 'aria-label': 'Jobs by state'}, tabs
        .filter((tab) => tab !== 'groups' || isBounded())
        .map((tab) => h('button', {role: 'tab', type: 'button', 'data-do': 'tab',
          'data-with': tab, id: 'tab-' + tab, tabindex: tab === self.at ? 0 : -1,
          'aria-selected': String(tab === self.at), 'aria-controls': 'jobs'},
        STATES.includes(tab) && shape(tab),
        tab[0].toUpperCase() + tab.slice(1),
        STATES.includes(tab) && h('span', {class: 'quiet'},
          countText(row, tab, short))))),
      h('div', {role: 'tabpanel', id: 'jobs', 'aria-labelledby': 'tab-' + self.at},
        tabPanel()),
    ];
  };

  const reread = () => {
    self.isChanged = true;
    return refresh();
  };
  const many = async (word, verb, done, body) => {
    const told = await post(path + '/dead/count', body)
      .catch((error) => say(error.message, true));
    if (!told) return;
    const failed = told.failed > 0
      ? `The filter failed on ${plural(told.failed, 'job')}.` : '';
    if (told.found === 0) return say('No dead job matches. ' + failed, failed);
    const ok = await question(`${verb} ${plural(told.found, 'dead job')}?`, [
      body.where && h('p', {}, 'Only where ', foreign(body.where, 'id')),
      failed && h('p', {class: 'problem'}, failed, ' They stay as they are.'),
      h('p', {}, word === 'delete' ? 'They are gone for good then.'
        : 'They become ready now, their attempts count from 0.')],
    verb, word === 'delete');
    if (!ok) return;
    self.isChanged = true;
    await act(`${path}/dead/${word}`, body, (result) =>
      `${plural(result[done], 'job')} ${done}` + (result[done] < result.found
        ? `; ${result.found - result[done]} had moved` : ''));
  };
  const ask_which = async (word, verb, done) => {
    const fields = await question(verb + ' dead jobs', [
      h('label', {class: 'field'}, 'Why they died', h('select', {name: 'group'},
        h('option', {value: ''}, 'for any reason'),
        (self.groups ? self.groups.groups : []).map((group) =>
          h('option', {value: group.key}, visible(group.reason +
            (group.error ? ': ' + group.error : '')).slice(0, 80))))),
      h('label', {class: 'field'}, 'Died since (your time)', h('input',
        {type: 'datetime-local', name: 'since', step: 1})),
      h('label', {class: 'field'}, 'Died before (your time)', h('input',
        {type: 'datetime-local', name: 'until', step: 1})),
      whereField(self.where)], 'Count them');
    if (!fields) return;
    const body = {group: fields.group || undefined,
      since_ms: momentOf(fields.since), until_ms: momentOf(fields.until),
      where: fields.where || undefined};
    if (Object.values(body).every((value) => value === undefined))
      body.all = true;
    await many(word, verb, done, body);
  };
  const picked = async (word, verb, done) => {
    const ids = [...self.picked];
    const ok = await question(`${verb} ${plural(ids.length, 'dead job')}?`, '',
      verb, word === 'delete');
    if (!ok) return;
    self.picked.clear();
    for (const box of document.querySelectorAll('[data-change="pick"]'))
      box.checked = false;
    self.isChanged = true;
    await act(`${path}/dead/${word}`, {ids}, (result) =>
      `${plural(result[done], 'job')} ${done}`);
  };
  self.does = {
    pause: () => pause(topic, true),
    resume: () => pause(topic, false),
    tab: (tab) => {
      Object.assign(self, {at: tab, places: ['']});
      self.picked.clear();
      history.replaceState(null, '', topicLink(topic, tab));
      return reread();
    },
    next: () => {
      if (!self.jobs || !self.jobs.next) return null;
      self.places.push(self.jobs.next);
      return reread();
    },
    previous: () => {
      if (self.places.length > 1) self.places.pop();
      return reread();
    },
    pick: (id, box) => {
      if (box.checked) self.picked.add(id);
      else self.picked.delete(id);
      show(self.render());
    },
    requeueGroup: (key) => many('requeue', 'Requeue', 'requeued',
      {group: key, where: self.where || undefined}),
    deleteGroup: (key) => many('delete', 'Delete', 'deleted',
      {group: key, where: self.where || undefined}),
    requeueMany: () => ask_which('requeue', 'Requeue', 'requeued'),
    deleteMany: () => ask_which('delete', 'Delete', 'deleted'),
    requeuePicked: () => picked('requeue', 'Requeue', 'requeued'),
    deletePicked: () => picked('delete', 'Delete', 'deleted'),
    unset: (name) => {
      self.isChanged = true;
      return act(path + '/options', {[name]: ''}, `${name} is as by default`);
    },
  };
  self.forms = {
    open: (fields) => {
      if (fields.id) location.hash = jobLink(topic, fields.id.trim());
    },
    where: (fields) => {
      Object.assign(self, {where: fields.where.trim(), places: ['']});
      self.picked.clear();
      return reread();
    },
    set: async (fields, form) => {
      self.isChanged = true;
      const done = await act(path + '/options', {[fields.name]: fields.value},
        `${fields.name} is ${fields.value}; workers follow within 5 s, but ` +
        'those whose flags say otherwise');
      if (done) form.reset();
    },
  };
  return self;
}

/* A jq program over a job as weir show --json prints it. */
const whereField = (text) => h('label', {class: 'field'},
  'Where (a jq program over the job)', h('input', {name: 'where', value: text,
    autocomplete: 'off', spellcheck: 'false', class: 'id',
    placeholder: '.body.tenant == "north"'}));

const whereSearch = (self) => h('form', {class: 'inline', 'data-form': 'where'},
  h('input', {type: 'search', name: 'where', id: 'where', class: 'id',
    placeholder: 'where: .body.tenant == "north"', value: self.where,
    'aria-label': 'Only jobs of which this jq program is true',
    autocomplete: 'off', spellcheck: 'false'}),
  h('button', {}, 'Filter'));

function optionsPanel(options) {
  const rows = Object.entries(options).map(([name, value]) => ({name, value}));
  return [
    h('div', {class: 'panel'}, rows.length === 0
      ? h('p', {class: 'empty'}, 'Nothing is stored with this topic: workers ' +
        'serve it as their files and flags say.')
      : table('Options', [
        {name: 'Option', cls: 'name', bare: true, cell: (row) => foreign(row.name)},
        {name: 'Value', cls: 'text', cell: (row) => foreign(row.value, 'id')},
        {name: '', bare: true, cell: (row) => mayAct && row.name !== 'kind' &&
          button('Remove', 'unset', row.name, 'tight',
            {'aria-label': 'Remove ' + row.name})},
      ], rows, (row) => row.name)),
    mayAct && h('form', {class: 'bar', 'data-form': 'set'},
      h('input', {name: 'name', required: true, placeholder: 'concurrency',
        'aria-label': 'Name of an option', autocomplete: 'off', spellcheck: 'false'}),
      h('input', {name: 'value', required: true, placeholder: '10',
        'aria-label': 'Its value', autocomplete: 'off', spellcheck: 'false'}),
      h('button', {}, 'Set'),
      h('span', {class: 'quiet small'}, 'for every worker; ',
        'docs/configuration.md has all options')),
  ];
}

function eventsPanel(groups) {
  return [h('div', {class: 'panel'}, !groups || groups.groups.length === 0
    ? h('p', {class: 'empty'}, 'No event waits.')
    : table('Events by group', [
      {name: 'Group', cls: 'name', bare: true, cell: (group) =>
        foreign(group.group, 'id')},
      {name: 'Events', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'Oldest', cell: (group) => timeNode(group.first_ms)},
      {name: 'Newest', cell: (group) => timeNode(group.last_ms)},
    ], groups.groups, (group) => group.key)),
  groups && !groups.complete && h('p', {class: 'notice'},
    `Of the first ${whole.format(groups.looked_at)} events.`)];
}

/* --- a job ---------------------------------------------------------------- */

function bodyText(body) {
  return (JSON.stringify(body, null, 2) ?? 'null').split('\n').map(visible)
    .join('\n');
}

function jobView(topic, id) {
  const self = {tab: 'topics', title: id, up: topicLink(topic), every: 2000};
  const path = jobPath(topic, id);
  const isDue = () => ['scheduled', 'ready'].includes(self.job.state);

  self.load = async () => {
    self.job = await ask(path, {}, parseExactly);
  };
  self.render = () => {
    const {job} = self;
    const counters = ['failures', 'timeouts', 'crashes', 'snoozes']
      .filter((name) => job[name] > 0)
      .map((name) => `${name} ${whole.format(job[name])}`);
    return [
      h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Topics'), ' › ',
        h('a', {href: topicLink(topic, job.state)}, foreign(topic))),
      h('div', {class: 'title'}, h('h1', {}, foreign(job.id, 'id')),
        h('span', {class: 'badge'}, shape(job.state), job.state),
        mayAct && h('div', {class: 'actions'},
          job.state === 'dead' && button('Requeue', 'requeue', '', 'main'),
          isDue() && button('Reschedule …', 'reschedule'),
          button('Delete …', 'delete', '', 'danger'))),
      readOnly(),
      h('div', {class: 'two'},
        h('div', {class: 'panel'}, h('h2', {}, 'The job'), facts([
          ['State', [shape(job.state), ' ', job.state]],
          [job.state === 'dead' ? 'Died' : 'Due', job.due_ms != null &&
            timeNode(job.due_ms)],
          job.added_ms != null && ['Added', timeNode(job.added_ms)],
          ['Group', job.group && foreign(job.group, 'id')],
          ['Attempts', `${job.attempt}` +
            (counters.length ? ` (${counters.join(', ')})` : '')],
          ['Reason', job.reason && visible(job.reason)],
          ['Last error', job.error && foreign(job.error)],
          job.state === 'running' && ['Worker', job.worker
            ? foreign(job.worker, 'id') : 'not told for this kind'],
          ['Claimed', job.claimed_ms > 0 && timeNode(job.claimed_ms)],
          ['Lease ends in', job.lease_left_ms > 0 &&
            spanText(job.lease_left_ms)],
          ['Lease', job.lease_left_ms === 0 &&
            'ended; runs again when a worker serves the topic'],
          ['Retry ladder', job.retry && visible(job.retry)],
          ['Time to live', job.ttl_ms != null && spanText(job.ttl_ms)],
          ['URL', job.url && foreign(job.url)],
          ...Object.entries(job.headers || {}).map(([name, value]) =>
            [visible(name), foreign(value, 'id')]),
        ])),
        h('div', {class: 'panel'}, h('h2', {}, 'Body'),
          h('pre', {class: 'body', tabindex: 0, dir: 'ltr'},
            bodyText(job.body)))),
    ];
  };
  const leave = () => { location.hash = topicLink(topic, self.job.state); };
  self.does = {
    requeue: () => act(path + '/requeue', {}, 'It is ready again.'),
    delete: async () => {
      const ok = await question('Delete this job?', h('p', {},
        self.job.state === 'running'
          ? 'The run that goes on is not interrupted; its verdict is ignored.'
          : 'It is gone for good then.'), 'Delete', true);
      if (!ok) return;
      try {
        await post(path + '/delete');
        say(`${id} is deleted`);
        leave();
      } catch (error) {
        say(error.message, true);
      }
    },
    reschedule: async () => {
      const fields = await question('Give it another due time', [
        h('label', {class: 'field'}, 'From now, such as 15s, 3m, 2h, 1d',
          h('input', {name: 'delay', autocomplete: 'off', placeholder: '15m'})),
        h('label', {class: 'field'}, 'or at (your time)', h('input',
          {type: 'datetime-local', name: 'at', step: 1}))], 'Reschedule');
      if (!fields) return;
      await act(path + '/reschedule', {delay: fields.delay || undefined,
        at: fields.at ? new Date(fields.at).toISOString() : undefined},
      'It has another due time.');
    },
  };
  return self;
}

/* --- workers and nodes ---------------------------------------------------- */

function workersView() {
  const self = {tab: 'workers', title: 'Workers', up: '#/', every: 2000};
  self.load = async () => {
    self.list = (await get('api/workers')).workers;
  };
  self.render = () => [
    h('div', {class: 'title'}, h('h1', {}, 'Workers'),
      h('span', {class: 'quiet'}, plural(self.list.length, 'worker'))),
    h('div', {class: 'panel'}, self.list.length === 0
      ? h('p', {class: 'empty'}, 'No worker runs. weir run starts one.')
      : table('Workers', [
        {name: 'Worker', cls: 'name', bare: true, cell: (worker) => [
          foreign(worker.name, 'id'),
          h('div', {class: 'under quiet small'}, foreign(worker.host),
            ` · pid ${worker.pid} · weir `, visible(worker.version))]},
        {name: 'Topics', cls: 'text', cell: (worker) => [
          worker.topics.map((topic, i) => [i > 0 && ', ',
            h('a', {href: topicLink(topic)}, foreign(topic))]),
          worker.topics_total > worker.topics.length &&
            ` and ${worker.topics_total - worker.topics.length} more`]},
        {name: 'Running', cls: 'num', cell: (worker) => whole.format(worker.running)},
        {name: 'Held', cls: 'num', cell: (worker) => whole.format(worker.held)},
        {name: 'Lag of its loop', cls: 'num', cell: (worker) =>
          worker.lag_us == null ? '–' : spanText(worker.lag_us / 1000)},
        {name: 'Since', cell: (worker) => timeNode(worker.since_ms)},
        {name: 'Connection', cell: (worker) => [visible(worker.transport || ''),
          worker.connections > 1 &&
            h('span', {class: 'warn'}, ` ▲ ${worker.connections - 1} reconnects`),
          worker.stopping && h('span', {class: 'badge warn'}, 'stopping')]},
      ], self.list, (worker) => worker.name)),
  ];
  return self;
}

function nodesView() {
  const self = {tab: 'nodes', title: 'Nodes', up: '#/', every: 5000};
  self.load = async () => {
    self.list = (await get('api/nodes')).nodes;
  };
  self.render = () => [
    h('div', {class: 'title'}, h('h1', {}, 'Nodes')),
    h('div', {class: 'panel'}, self.list.length === 0
      ? h('p', {class: 'empty'}, 'Asking the server …')
      : table('Nodes', [
        {name: 'Node', cls: 'name', bare: true, cell: (node) =>
          foreign(node.name, 'id')},
        {name: 'State', cell: (node) => node.up
          ? h('span', {class: 'badge good'}, '● up')
          : [h('span', {class: 'badge bad'}, '▲ away'), ' ',
            foreign(node.why || '')]},
        {name: 'Role', cell: (node) => visible(node.role || '–')},
        {name: 'Version', cell: (node) => visible(node.version || '–')},
        {name: 'Replicas', cls: 'num', cell: (node) => String(node.replicas) +
          (node.behind_bytes > 0 ? `, ${sizeText(node.behind_bytes)} behind` : '')},
        {name: 'Memory', cls: 'num', cell: (node) => sizeText(node.memory_bytes) +
          (node.memory_max_bytes > 0 ? ' of ' + sizeText(node.memory_max_bytes) : '')},
        {name: 'Clients', cls: 'num', cell: (node) => String(node.clients)},
      ], self.list, (node) => node.name)),
  ];
  return self;
}

/* --- keys, fields, the head ----------------------------------------------- */

let searchTimer;
document.addEventListener('input', (event) => {
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
  u: () => { if (view.up) location.hash = view.up; },
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
  await ask('logout', {method: 'POST'}).catch(() => {});
  showLogin();
});

async function start() {
  try {
    mayAct = (await get('api/session')).may_act;
    byId('logout').hidden = !mayAct;
  } catch (error) {
    if (error.status === 401) {
      main.replaceChildren();
      return showLogin();
    }
  }
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
