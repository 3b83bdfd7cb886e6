/* SPDX-License-Identifier: MIT */

/* Asking weir web, telling and asking the reader. */

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

/* The key of the session, which every request shows. Only pages of this scheme,
 * host and port can read it; the cookie goes to every port of the host. */
const KEY = 'key ' + location.pathname;
let heldKey = '';
function sessionKey() {
  try {
    return localStorage.getItem(KEY) || heldKey;
  } catch {
    return heldKey;
  }
}
function keepKey(key) {
  heldKey = key;
  try {
    localStorage.setItem(KEY, key);
  } catch { /* the key is gone with the page */ }
}

async function ask(path, options = {}, read = (text) => JSON.parse(text)) {
  let response;
  try {
    response = await fetch(path, {...options,
      headers: {...options.headers, 'Weir-Key': sessionKey()}});
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

/* A dialog; resolves with what `check` makes of its fields, or null when it was
 * left. What `check` throws is shown, and the dialog stays as it is. */
function question(title, content, verb,
  {isDanger = false, check = (fields) => fields} = {}) {
  const dialog = byId('dialog');
  return new Promise((resolve) => {
    let answer = null, isChecking = false;
    const problem = h('p', {class: 'problem', role: 'alert', hidden: true});
    const form = h('form', {onsubmit: async (event) => {
      event.preventDefault();
      if (isChecking) return;
      isChecking = true;
      try {
        answer = await check(Object.fromEntries(new FormData(form)));
        if (form.isConnected) dialog.close();
      } catch (error) {
        problem.hidden = false;
        problem.replaceChildren(visible(error.message));
      }
      isChecking = false;
    }}, content, problem, h('div', {class: 'buttons'},
      h('button', {type: 'button', onclick: () => dialog.close()}, 'Cancel'),
      h('button', {class: isDanger ? 'danger' : 'main'}, verb)));
    dialog.replaceChildren(h('h2', {id: 'dialog-title'}, title), form);
    dialog.onclose = () => {
      form.remove();
      resolve(answer);
    };
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
