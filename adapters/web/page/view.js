/* SPDX-License-Identifier: MIT */

/* What is shown, and what all views have. */

const PAGE = 100; /* rows */

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
  if (parts[0] === 'workers') return workersView(parts[1]);
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
