/* SPDX-License-Identifier: MIT */

/* The page of weir web: the files of this folder, one behind the other, are its
 * one script, in the order of ../CMakeLists.txt. It asks /api (docs/web.md) for
 * what is shown, each second while somebody looks, and builds all of it from
 * text: nothing that comes from a server is ever read as HTML.
 *
 *   #/                     topics          #/t/TOPIC/STATE    jobs of a topic
 *   #/workers  #/nodes                     #/j/TOPIC/ID       one job
 *
 * with what is searched for, the order, the filter and the page behind it:
 * #/?q=mail&sort=dead, #/t/TOPIC/dead?where=.body.n>1
 *
 * Here: elements, and how what is shown becomes what is to be shown. */
'use strict';

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

/* A field shows what its attribute became, but for one that is being typed in
 * and is followed at each letter. */
function setTo(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else node.setAttribute(name, value);
  if (name === 'checked' || name === 'selected') node[name] = value !== null;
  if (name === 'value' && node.matches('input') &&
      !node.matches('[data-type="search"]:focus'))
    node.value = value ?? '';
}

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
    if (!next.hasAttribute(name) && name !== 'open') setTo(old, name, null);
  for (const {name, value} of [...next.attributes])
    if (old.getAttribute(name) !== value) setTo(old, name, value);
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
