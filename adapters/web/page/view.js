/* SPDX-License-Identifier: MIT */

/* What is shown, and what all views have. */

const PAGE = 100; /* rows */

const main = byId('main');
let view = null, mayAct = false, timer = null, turn = 0;

/* Show `nodes` in the place of what is shown. What has the focus keeps it,
 * where its row moves; where it goes, it is the page's. */
function show(...nodes) {
  const focused = document.activeElement;
  patchChildren(main, h('main', {}, ...nodes));
  if (focused === document.activeElement || focused === document.body) return;
  (focused.isConnected ? focused : main).focus({preventScroll: true});
}

/* It is read aloud when it changes. */
function showState(told) {
  const isOk = told && told.server === 'ok';
  patch(byId('state'), h('p', {id: 'state', role: 'status',
    class: isOk ? null : 'away'}, isOk ? '● live'
    : told && told.server ? `▲ ${told.server}; as of ` : '▲ ',
  !isOk && told && told.taken_ms ? timeNode(told.taken_ms) : '',
  !isOk && told && told.error ? visible(told.error) : ''));
}

/* --- the address ---------------------------------------------------------- */

function readAddress() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {parts, fields: new URLSearchParams(rest.join('?'))};
}

/* '#/a/b?name=value': fields that are '' are left out. */
function addressOf(parts, fields) {
  const text = query(fields || {});
  return '#/' + parts.map(encodeURIComponent).join('/') +
    (text === '?' ? '' : text);
}
const topicLink = (topic, state) =>
  addressOf(['t', topic].concat(state || []));
const jobLink = (topic, id) => addressOf(['j', topic, id]);

/* Where a list was left: what leads back leads there. */
const left = {};
const topicsAddress = () => left.topics || '#/';
const jobsAddress = (topic, state) => left['t/' + topic] ||
  topicLink(topic, state);

function route([what, topic, id]) {
  if (what === 't' && topic) return topicView(topic);
  if (what === 'j' && topic && id) return jobView(topic, id);
  if (what === 'workers') return workersView(topic);
  if (what === 'nodes') return nodesView();
  return topicsView();
}

/* Show what an address says; as one step back, unless it is `isSame`. */
function goTo(address, isSame) {
  if (address !== location.hash)
    history[isSame ? 'replaceState' : 'pushState'](null, '', address);
  return go();
}

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

/* A view has take(fields, state) where its address says more than which view it
 * is, and then the name under which `left` has it. */
function go() {
  const {parts, fields} = readAddress();
  const next = route(parts);
  const isSame = view && next.name && next.name === view.name;
  if (!isSame) {
    if (view) main.focus({preventScroll: true});
    view = next;
    document.title = view.title ? view.title + ' · weir' : 'weir';
    for (const link of document.querySelectorAll('nav a'))
      if (link.dataset.view === view.tab)
        link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    main.setAttribute('aria-busy', 'true');
    main.replaceChildren(h('p', {class: 'empty'}, 'Reading …'));
    scrollTo(0, 0);
  }
  if (view.take) {
    view.take(fields, parts[2]);
    left[view.name] = location.hash;
  }
  return refresh();
}

function showLogin(why) {
  show(h('form', {class: 'panel login', onsubmit: async (event) => {
    event.preventDefault();
    try {
      const session = await ask('login', {method: 'POST',
        headers: {'Content-Type': 'text/plain'},
        body: new FormData(event.target).get('token')});
      keepKey(session.key);
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
 * cls, cell(row), and sort: what the server calls it; without a name a label,
 * which is only read aloud. */
function table(caption, columns, rows, key, sorting) {
  const head = columns.map((column) => {
    const isSorted = sorting && column.sort && sorting.sort === column.sort;
    return h('th', {scope: 'col', class: column.cls, 'aria-sort': isSorted
      ? (sorting.isUp ? 'ascending' : 'descending') : null},
    column.sort ? h('button', {type: 'button', 'data-sort': column.sort},
      column.name, isSorted ? (sorting.isUp ? ' ▴' : ' ▾') : '')
      : column.name || h('span', {class: 'hidden-text'}, column.label));
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

/* Of a list that is read by `offset`. */
const pagesOf = (told, count) => pages(told.offset > 0,
  told.offset + count < told.found, told.found === 0 ? ''
    : `${whole.format(told.offset + 1)} to ${
      whole.format(told.offset + count)} of ${whole.format(told.found)}`);

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
