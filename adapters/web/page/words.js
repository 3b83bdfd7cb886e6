/* SPDX-License-Identifier: MIT */

/* What is said of numbers, times and states. */

const STATES = ['scheduled', 'ready', 'running', 'dead'];
const LATE_MS = 10000, VERY_LATE_MS = 60000;

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const short = new Intl.NumberFormat('en',
  {notation: 'compact', maximumFractionDigits: 1});

function rateText(rate) {
  if (rate == null) return '–';
  if (rate > 0 && rate < 1) return (rate * 60).toFixed(0) + '/min';
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

const counts = (row) => h('div', {class: 'counts'}, STATES.map((state) =>
  h('span', {class: row[state] ? null : 'zero',
    title: whole.format(row[state] || 0) + ' ' + state},
  shape(state), countText(row, state, short), ' ' + state)));

/* Whether somebody serves it: a warning where jobs wait for nobody. */
function servedBadge(row) {
  if (row.workers == null) return null;
  if (row.workers > 0)
    return h('a', {class: 'badge', href: topicLink(row.topic, 'workers')},
      `served by ${plural(row.workers, 'worker')}`);
  const cls = row.paused ? '' : row.ready > 0 || row.lease_ended_ms != null ? ' bad'
    : row.scheduled > 0 || row.running > 0 ? ' warn' : '';
  return h('span', {class: 'badge' + cls}, cls && '▲ ', 'nobody serves it');
}

const LIMITED = {rate: 'at its rate', parallel: 'as many run as may',
  key: 'keys may not start more'};

const badges = (row) => [
  h('span', {class: 'badge'}, row.kind || 'unknown'),
  row.paused && h('span', {class: 'badge warn'}, '❚❚ paused'),
  row.limited && h('span', {class: 'badge warn'}, LIMITED[row.limited]),
  row.away && h('span', {class: 'badge bad'}, '▲ away'),
  row.lease_ended_ms >= LATE_MS && h('span', {class: 'badge bad'},
    `▲ lease ended ${spanText(row.lease_ended_ms)} ago`),
  servedBadge(row),
  row.unserved_groups > 0 && row.workers > 0 &&
    h('span', {class: 'badge bad'},
      `▲ no worker serves ${plural(row.unserved_groups, 'group')}`),
];

const plural = (count, word) =>
  `${whole.format(count)} ${word}${count === 1 ? '' : 's'}`;
