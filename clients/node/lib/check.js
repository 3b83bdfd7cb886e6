// SPDX-License-Identifier: MIT
// What a caller may say. A refusal names the option and what was meant, before
// anything is sent; clients/python/src/weir/check.py has the same sentences.

import { inspect } from 'node:util';

const DAYS_3650_MS = 3650 * 86400000;
const UNITS = { w: 604800000, d: 86400000, h: 3600000, m: 60000, s: 1000,
  ms: 1 };
const DURATION = new RegExp(`^${Object.keys(UNITS).map((unit) =>
  `(?:([0-9]{1,12})${unit})?`).join('')}$`);
// Names that other libraries have, without _ and in small letters.
const MEANT = { countdown: 'delayMs', eta: 'atMs', runat: 'atMs', when: 'atMs',
  expires: 'ttlMs', jobid: 'id', taskid: 'id', attempts: 'retry',
  backoff: 'retry', retries: 'retry', maxretries: 'retry', ladder: 'retry',
  uniquekey: 'unique', for: 'uniqueFor', else: 'uniqueElse',
  threads: 'concurrency', workers: 'concurrency' };

export const ascii = (text) => text.replace(/[^ -~]/g, (letter) =>
  `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);

export function shown(value) {
  let text;
  try {
    text = inspect(value, { depth: 0, breakLength: Infinity,
      maxStringLength: 60 });
  } catch {
    text = typeof value;
  }
  text = ascii(text);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

function refuse(name, value, rule) {
  throw new RangeError(`the ${name} ${shown(value)} is not ${rule}`);
}

/** How many letters differ. */
function distance(one, other) {
  let row = [...other].map((_, i) => i + 1);
  row.unshift(0);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1,
                         row[j - 1] + Number(one[i - 1] !== other[j - 1])));
    }
    row = next;
  }
  return row[other.length];
}

const plain = (name) => name.replaceAll('_', '').toLowerCase()
  .replace(/(?<=.)ms$/, '');

export function unknown(call, name, names) {
  const wanted = plain(name);
  const near = names.map((one) => [distance(wanted, plain(one)), one])
    .sort(([one], [other]) => one - other)
    .find(([far]) => far <= (wanted.length + 1) / 3);
  const other = Object.hasOwn(MEANT, wanted) && MEANT[wanted];
  const meant = names.includes(other) ? other : near?.[1];
  return new RangeError(`"${ascii(name)}" is no option of ${call}${meant
    ? `: ${meant} is meant` : `; its options are ${names.join(', ')}`}`);
}

/** Is it no Map, Date, Promise or the like, whose values are no properties? */
const hasNames = (value) =>
  Object.prototype.toString.call(value) === '[object Object]';

/** The values that are given, checked: each name has a rule. */
export function optionsOf(call, options, rules) {
  if (!hasNames(options)) {
    refuse(`options of ${call}`, options, 'an object');
  }
  const told = {};
  for (const name in options) { // those of a prototype, too
    if (!Object.hasOwn(rules, name)) {
      throw unknown(call, name, Object.keys(rules));
    }
    if (options[name] !== undefined) {
      told[name] = rules[name](name, options[name]);
    }
  }
  return told;
}

const match = (pattern, rule) => (name, value) => {
  if (typeof value !== 'string' || !pattern.test(value)) {
    refuse(name, value, rule);
  }
  return value;
};

const topicRule = match(/^[A-Za-z0-9._:-]{1,40}$/,
                        '1 to 40 of A-Z a-z 0-9 . _ : -');
export const topicOf = (value) => topicRule('topic', value);
export const prefixOf = match(/^[A-Za-z0-9._:-]{1,32}$/,
                              '1 to 32 of A-Z a-z 0-9 . _ : -');
const idRule = match(/^["-?A-z|~][!-z|~]{0,127}$/, '1 to 128 visible ASCII '
  + 'characters without { and }, not beginning with @ or !');
const anyIdRule = match(/^(@[-\w]{14}|[!-z|~]{1,128})$/, 'that of a job: 1 to '
  + '128 visible ASCII characters');
/** Also one that weir made. */
export const anyIdOf = (value) => anyIdRule('id', value);

export const whole = (least, most, unit = '') => (name, value) => {
  if (!Number.isInteger(value) || value < least || value > most) {
    refuse(name, value, `a whole number${unit} from ${least} to ${most}`);
  }
  return value;
};
const MS = ' of milliseconds';
export const delayOf = whole(0, DAYS_3650_MS, MS);
export const laterOf = whole(0, 9999999999999, MS); // of a verdict
export const timeoutOf = whole(1, 86400000, MS);

export const functionOf = (name, value) => {
  if (typeof value !== 'function') refuse(name, value, 'a function');
  return value;
};

const text = (most) => (name, value) => {
  if (typeof value !== 'string' || value === '' ||
      /\p{Surrogate}/u.test(value) || Buffer.byteLength(value) > most) {
    refuse(name, value, `a text of 1 to ${most} bytes in UTF-8`);
  }
  return value;
};

/** Of 15s or 1h30m; undefined: it is none. */
function msOf(value) {
  const found = value !== '' && DURATION.exec(value);
  if (!found) return undefined;
  return Object.values(UNITS).reduce(
    (sum, factor, i) => sum + Number(found[i + 1] ?? 0) * factor, 0);
}

function ladder(name, value) {
  const isStep = (word) => {
    const ms = msOf(word);
    return ms >= 1 && ms <= 365 * 86400000;
  };
  const trim = (one) => one.replace(/^[ \t]+|[ \t]+$/g, '');
  const steps = typeof value === 'string'
    ? trim(value.replace(/\.\.\.[ \t]*$/, '')).split(/[ \t]+/) : [];
  const isLadder = steps.length >= 1 && steps.length <= 64 &&
    (trim(value) === 'none' || steps.every(isStep));
  if (!isLadder) {
    refuse(name, value, 'none, or a ladder such as 15s 3m 10m, of 1 to 64 '
      + 'steps of 1ms to 365d');
  }
  return value;
}

const window = (...words) => (name, value) => {
  const ms = typeof value === 'string' ? msOf(value) : undefined;
  if (!words.includes(value) && !(ms >= 1 && ms <= DAYS_3650_MS)) {
    refuse(name, value, `${words.map((word) => `${word}, `).join('')}a time `
      + 'such as 10m, up to 3650d');
  }
  return value;
};

const oneOf = (...words) => (name, value) => {
  if (!words.includes(value)) {
    refuse(name, value, `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`);
  }
  return value;
};

function headers(name, value) {
  const prototype = value && Object.getPrototypeOf(value);
  const isPlain = typeof value === 'object' && value !== null &&
    (prototype === null || prototype === Object.prototype);
  if (!isPlain || Object.keys(value).length > 16) {
    refuse(name, value, 'an object of at most 16 texts');
  }
  const seen = new Set();
  for (const [key, one] of Object.entries(value)) {
    const small = key.toLowerCase();
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(key) || seen.has(small) ||
        small.startsWith('weir.')) {
      refuse('header name', key, 'one of its own, of letters, digits and '
        + "!#$%&'*+-.^_`|~, not beginning with weir.");
    }
    if (typeof one !== 'string' || !/^[!-~]([ -~]*[!-~])?$/.test(one) ||
        key.length + one.length > 256) {
      refuse(`header ${ascii(key)}`, one, 'visible ASCII with blanks only '
        + 'within, 256 bytes at most with its name');
    }
    seen.add(small);
  }
  return { ...value };
}

const PACKED = { id: idRule, delayMs: delayOf,
  atMs: whole(0, 9999999999999, `${MS} since 1970`), retry: ladder,
  ttlMs: whole(1, DAYS_3650_MS, MS), url: text(2048), headers };
// Of a job that is pushed.
const KEYED = { key: text(2048),
  priority: oneOf('urgent', 'high', 'normal', 'low'), unique: text(2048),
  uniqueFor: window('until-done', 'until-start'),
  uniqueElse: oneOf('reject', 'replace', 'debounce', 'throttle'),
  maxWait: window() };
const ADD = { ...PACKED, ...KEYED, timeoutMs: timeoutOf };
const NEW_JOB = { body: (_, value) => value, ...PACKED };

function checkTimes({ delayMs, atMs }) {
  if (delayMs !== undefined && atMs !== undefined) {
    throw new RangeError('delayMs and atMs are two times: give one of them');
  }
}

/** The options of add. */
export function addOptions(options) {
  const told = optionsOf('add', options, ADD);
  checkTimes(told);
  for (const name of ['uniqueFor', 'uniqueElse', 'maxWait']) {
    if (name in told && !('unique' in told)) {
      throw new RangeError(`${name} says something of a key: give unique, too`);
    }
  }
  if (told.uniqueElse === 'throttle' &&
      (told.uniqueFor ?? 'until').startsWith('until')) {
    throw new RangeError('throttle needs a window: give uniqueFor a time such '
      + 'as 10m');
  }
  if ('maxWait' in told && told.uniqueElse !== 'debounce') {
    throw new RangeError('only debounce has maxWait: give uniqueElse debounce, '
      + 'or leave it out');
  }
  return told;
}

/** A job of addMany; one without a body has null. */
export function jobOptions(job) {
  for (const name in job) {
    if (Object.hasOwn(KEYED, name)) {
      throw new RangeError(`"${name}" is no option of addMany: such jobs are `
        + 'added one by one, by add');
    }
  }
  const told = optionsOf('a job of addMany', job, NEW_JOB);
  checkTimes(told);
  if (!('body' in job)) told.body = null;
  return told;
}

export function arrayOf(name, value) {
  if (!Array.isArray(value)) refuse(name, value, 'an array');
  return Array.from(value); // without holes
}

/** Handlers by topic. */
export function topicsOf(value) {
  if (!hasNames(value) || Object.keys(value).length === 0) {
    throw new RangeError(`the topics are ${shown(value)}, not an object with a `
      + 'handler for each topic');
  }
  return Object.entries(value);
}
