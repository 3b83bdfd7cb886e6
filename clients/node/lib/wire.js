// SPDX-License-Identifier: MIT
// docs/wire.md as functions that know no server: msgpack, names, packs,
// records, nodes.

import { Encoder, decode, encode } from '@msgpack/msgpack';

const ALPHABET =
  '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';
const YEAR_2020_MS = 1577836800000;
const LADDER = '15s 3m 10m 30m 30m 1h 2h 6h 15h';
const UNITS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const ID = /^[\x21-\x7a\x7c\x7e]{1,128}$/;
const PACK_BYTES_MAX = 256 * 1024;
const MIXED = 2 ** 53;
const encoder = new Encoder();

// --- msgpack -----------------------------------------------------------------

// Of the first bytes from 0xc0: the bytes of a length, how many follow it, and
// how many values each of that length is.
const HEADS = [[0, 0], null, [0, 0], [0, 0], [1, 0], [2, 0], [4, 0], [1, 1],
  [2, 1], [4, 1], [0, 4], [0, 8], [0, 1], [0, 2], [0, 4], [0, 8], [0, 1],
  [0, 2], [0, 4], [0, 8], [0, 2], [0, 3], [0, 5], [0, 9], [0, 17], [1, 0],
  [2, 0], [4, 0], [2, 0, 1], [4, 0, 1], [2, 0, 2], [4, 0, 2]];

/** Where the value at `at` ends; -1: there is none, or it is nested deeper
 * than 32. */
function endOf(bytes, at, depth = 32) {
  if (depth === 0 || at >= bytes.length) return -1;
  const first = bytes[at++];
  let values = 0;
  if (first < 0x80 || first >= 0xe0) return at;
  if (first < 0xa0) {
    values = (first & 15) * (first < 0x90 ? 2 : 1);
  } else if (first < 0xc0) {
    at += first & 31;
  } else {
    const [width, more, each] = HEADS[first - 0xc0] ?? [bytes.length, 0];
    if (at + width > bytes.length) return -1;
    const size = width > 0 ? bytes.readUIntBE(at, width) : 0;
    at += width + more + (each ? 0 : size);
    values = each ? each * size : 0;
  }
  for (; values > 0 && at >= 0; values--) at = endOf(bytes, at, depth - 1);
  return at <= bytes.length ? at : -1;
}

/** The values of an array or a map, not decoded; null where it is none. */
function valuesOf(bytes, isOne) {
  const wide = HEADS[bytes[0] - 0xc0];
  if (!isOne(bytes[0]) || endOf(bytes, 0) !== bytes.length) return null;
  const values = [];
  for (let at = 1 + (wide ? wide[0] : 0), end; at < bytes.length; at = end) {
    end = endOf(bytes, at);
    values.push(bytes.subarray(at, end));
  }
  return values;
}

const isText = (first) => first >> 5 === 5 || (first >= 0xd9 && first <= 0xdb);
const isArray = (first) => first >> 4 === 9 || (first | 1) === 0xdd;
const isMap = (first) => first >> 4 === 8 || (first | 1) === 0xdf;

function bigEndian(value, width) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes.latin1Slice(8 - width);
}

function packed(value) {
  if (Array.isArray(value)) { // of 15 at most
    return String.fromCharCode(0x90 + value.length)
      + value.map(packed).join('');
  }
  if (typeof value === 'number') {
    return value < 128 ? String.fromCharCode(value)
      : `\xcf${bigEndian(value, 8)}`;
  }
  return (value.length < 32 ? String.fromCharCode(0xa0 + value.length)
    : `\xdb${bigEndian(value.length, 4)}`) + value;
}

/** A list for settle.lua: its strings, of one byte a character, are of type
 * str. */
export function listOf(values) {
  if (values.length === 0) return '';
  return Buffer.from(`\xdc${bigEndian(values.length, 2)}`
    + values.map(packed).join(''), 'latin1');
}

// --- what a caller may say ---------------------------------------------------

export function checkTopic(topic) {
  if (!/^[A-Za-z0-9._:-]{1,40}$/.test(topic)) {
    throw new RangeError(`the topic ${JSON.stringify(topic)} is not 1 to 40 `
      + 'of A-Z a-z 0-9 . _ : -');
  }
}

export function checkMs(name, value) {
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** 45) {
    throw new RangeError(`${name} is a whole number of milliseconds from 0`);
  }
  return value;
}

function optionsOf({ retry, ttlMs, url, headers }) {
  const options = {};
  if (retry !== undefined) {
    ladderOf(retry);
    options.retry = retry;
  }
  if (ttlMs !== undefined) options.ttl_ms = checkMs('ttlMs', ttlMs);
  if (url !== undefined) options.url = url;
  if (headers !== undefined) options.headers = headers;
  return Object.keys(options).length > 0 ? options : null;
}

/** A job to add, checked: { index, id, form, ms, options, record }. */
export function newJob(job, index = 0) {
  const { id = '', delayMs = 0, atMs, body = null } = job;
  if (id !== '' && (!ID.test(id) || id[0] === '~' || id[0] === '!')) {
    throw new RangeError(`the id ${JSON.stringify(id)} is not 1 to 128 `
      + 'visible ASCII characters without { and }, or begins with ~ or !');
  }
  const form = atMs === undefined ? 'r' : 'a';
  const ms = atMs === undefined ? checkMs('delayMs', delayMs)
    : checkMs('atMs', atMs);
  const options = optionsOf(job);
  return { index, id, form, ms, options,
    record: encoder.encode([1, 0, 0, 0, 0, 0, options, body]) };
}

// --- names and packs ---------------------------------------------------------

function letters(value, count) {
  let text = '';
  for (; count > 0; count--, value = Math.floor(value / 64)) {
    text = ALPHABET[value % 64] + text;
  }
  return text;
}

/** Makes the names of packs. `number`: that of the last one. */
export class Names {
  constructor(producer) {
    this.producer = letters(producer % 2 ** 23, 4);
    this.number = 0;
  }

  next(serverMs) {
    this.number = Math.max((Math.floor(serverMs) - YEAR_2020_MS) * 128,
                           this.number + 1);
    return letters(this.number, 8) + this.producer;
  }
}

/** When the pack of this name was made, in ms since 1970. */
export function madeMs(name) {
  const number = [...name.slice(0, 8)].reduce(
    (sum, letter) => sum * 64 + ALPHABET.indexOf(letter), 0);
  return Math.floor(number / 128) + YEAR_2020_MS;
}

/** The id of a job that was given none. */
export const madeId = (name, slot) =>
  `~${name}${slot < 16 ? '0' : ''}${slot.toString(16)}`;
export const isId = (id) => ID.test(id) && id[0] !== '!';

/** Jobs as packs, { jobs, size, when }: in one all have an id or none; where
 * their times differ they are 16 at most. */
export function packsOf(jobs) {
  const packs = [];
  const open = new Map(); // by what its jobs have in common
  const isSame = jobs.every(({ form, ms }) => form === jobs[0].form &&
                            ms === jobs[0].ms);
  for (const job of jobs) {
    const kind = job.form + (job.id === '');
    let pack = open.get(kind);
    if (!pack || pack.jobs.length === (isSame ? 256 : 16) ||
        pack.size + job.record.length > PACK_BYTES_MAX - 8192) {
      packs.push(pack = { jobs: [], size: 0 });
      open.set(kind, pack);
    }
    pack.jobs.push(job);
    pack.size += job.record.length + job.id.length;
  }
  for (const pack of packs) {
    const { form, ms } = pack.jobs[0];
    pack.when = pack.jobs.every((job) => job.ms === ms) ? `${form}${ms}`
      : Buffer.concat([Buffer.from(form === 'r' ? 'p' : 'q'),
        encode(pack.jobs.map((job) => job.ms))]);
  }
  return packs;
}

/** The bytes of a pack of such jobs; `headerLength` is written into it. */
export function writePack(pack) {
  const { jobs } = pack;
  const ids = jobs[0].id === '' ? [] : encode(jobs.map(({ id }) => id));
  pack.headerLength = 8 + ids.length;
  const head = Buffer.alloc(pack.headerLength + 4 * (jobs.length + 1));
  head.write('W1');
  head.set([jobs.length - 1, 0, ids.length > 0 ? 1 : 0], 2);
  head.writeUIntLE(pack.headerLength, 5, 3);
  head.set(ids, 8);
  let offset = 0;
  let at = pack.headerLength;
  for (const { record } of jobs) {
    at = head.writeUInt32LE(offset, at);
    offset += record.length;
  }
  head.writeUInt32LE(offset, at);
  return Buffer.concat([head, ...jobs.map(({ record }) => record)]);
}

/** A pack from the server: { count, ids, headerLength, record(slot) }. null: it
 * cannot be read; 'newer': it is of a later weir. */
export function readPack(bytes) {
  if (bytes.length < 8 || bytes[0] !== 0x57) return null;
  if (bytes[1] !== 0x31) return 'newer';
  const count = bytes[2] + 1;
  const headerLength = bytes.readUIntLE(5, 3);
  const first = headerLength + 4 * (count + 1);
  if (bytes[4] > 1 || first > bytes.length) return null;
  const at = (slot) => first + bytes.readUInt32LE(headerLength + 4 * slot);
  for (let slot = 0; slot < count; slot++) {
    if (at(slot) > at(slot + 1)) return null;
  }
  const ids = bytes[4] === 0 ? null
    : valuesOf(bytes.subarray(8, headerLength), isArray)?.map((id) =>
      (isText(id[0]) ? id.latin1Slice(id[0] === 0xd9 ? 2 : 1) : ''));
  if (at(0) !== first || at(count) !== bytes.length ||
      (ids !== null && ids?.length !== count)) return null;
  return { count, ids, headerLength,
    record: (slot) => bytes.subarray(at(slot), at(slot + 1)) };
}

// --- records -----------------------------------------------------------------

const COUNTERS = ['attempt', 'failures', 'timeouts', 'crashes', 'snoozes'];
const TEXTS = ['retry', 'url', 'reason', 'error'];
const COUNTS = ['ttl_ms', 'added_ms', 'spent'];
const isCount = (value) => Number.isInteger(value) && value >= 0;
const NONE = new Map();
export const EMPTY_RECORD = { attempt: 0, failures: 0, timeouts: 0, crashes: 0,
  snoozes: 0, options: NONE, body: Buffer.of(0xc0) };

/** A record: its counters, `options` and `body`; the values of the Map options
 * and the body are msgpack. null and 'newer' as of a pack. */
export function readRecord(bytes) {
  if (bytes.length > 8 && bytes[0] === 0x98 && bytes[1] === 1 &&
      (bytes[2] | bytes[3] | bytes[4] | bytes[5] | bytes[6]) < 128 &&
      bytes[7] === 0xc0) { // nearly every one
    return endOf(bytes, 8) !== bytes.length ? null
      : { attempt: bytes[2], failures: bytes[3], timeouts: bytes[4],
        crashes: bytes[5], snoozes: bytes[6], options: NONE,
        body: bytes.subarray(8) };
  }
  const values = valuesOf(bytes, isArray);
  const version = values?.length > 0 && decode(values[0]);
  if (isCount(version) && version > 1) return 'newer';
  if (version !== 1 || values.length !== 8) return null;
  const record = { options: readOptions(values[6]), body: values[7] };
  COUNTERS.forEach((name, i) => { record[name] = decode(values[i + 1]); });
  return record.options && COUNTERS.every((name) => isCount(record[name]))
    ? record : null;
}

function readOptions(bytes) {
  const options = new Map();
  const flat = bytes[0] === 0xc0 ? [] : valuesOf(bytes, isMap);
  for (let i = 0; i < flat?.length; i += 2) {
    const value = flat[i + 1];
    const name = isText(flat[i][0]) && decode(flat[i]);
    if (name === false || options.has(name)) continue;
    if ((TEXTS.includes(name) && !isText(value[0])) ||
        (COUNTS.includes(name) && !isCount(decode(value))) ||
        (name === 'headers' && !isMap(value[0]))) return null;
    options.set(name, value);
  }
  return flat && options;
}

/** An option of a record, decoded. */
export function optionOf(record, name) {
  const raw = record.options.get(name);
  return raw && decode(raw);
}

/** The record with so much added to its counters, and other options. */
export function changedRecord(record, added, counters, options) {
  const all = new Map([['added_ms', encode(added)], ...record.options,
    ...Object.entries(options).map(([name, value]) => [name, encode(value)])]);
  return Buffer.concat([Buffer.of(0x98, 1),
    ...COUNTERS.map((name) => encode(record[name] + (counters[name] ?? 0))),
    Buffer.of(0xde, 0, all.size), ...[...all].flatMap(([name, raw]) =>
      [encode(name), raw]), record.body]).latin1Slice();
}

// --- options and nodes -------------------------------------------------------

/** ms of a duration such as 1h30m. */
function durationOf(text) {
  if (!/^(\d+(ms|[smhdw]))+$/.test(text)) {
    throw new RangeError(`${JSON.stringify(text)} is not a duration`);
  }
  return [...text.matchAll(/(\d+)(ms|[smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + count * UNITS[unit], 0);
}

/** The steps of a ladder in ms; the last one has `repeats` where it does. */
function ladderOf(text) {
  if (text.trim() === 'none') return { steps: [] };
  const [, words, dots] = /^(.*?)[ \t]*(\.\.\.)?$/.exec(text.trim());
  return { steps: words.split(/[ \t]+/).map(durationOf), repeats: !!dots };
}

/** What a worker has to know of a topic, from its stored options. */
export function topicOptions(stored) {
  return { ladder: ladderOf(stored.retry ?? LADDER),
    jitter: Number.parseInt(stored.retry_jitter ?? 0, 10),
    maxCrashes: Number(stored.max_crashes ?? 3),
    maxDead: Number(stored.max_dead ?? 10000),
    ttlMs: (stored.ttl ?? 'none') === 'none' ? 0 : durationOf(stored.ttl),
    timeoutMs: durationOf(stored.timeout ?? '30s'),
    leaseMs: durationOf(stored.lease ?? '5s'),
    hasOnDead: (stored.on_dead ?? 'none') !== 'none' };
}

/** ms until the next run of a job that is retried; -1: it is dead. */
export function retryDelay(record, { ladder, jitter }) {
  const own = optionOf(record, 'retry');
  try {
    if (own) ladder = ladderOf(own);
  } catch { /* as if it had none */ }
  const { steps, repeats } = ladder;
  const step = Math.max(record.attempt - (optionOf(record, 'spent') ?? 0), 0);
  if (step >= steps.length && !repeats) return -1;
  const delay = steps[Math.min(step, steps.length - 1)];
  const span = delay * jitter / 100;
  return Math.max(Math.round(delay - span + Math.random() * 2 * span), 1);
}

/** A node of a claim: { text, name, lo, hi, isMixed, ended, due(slot) }. */
export function readNode(bytes, value) {
  const bound = (at) => (bytes[at] - 48) * 16 + bytes[at + 1] - 48;
  const text = bytes.latin1Slice();
  const node = { text, name: text.slice(0, 12), lo: bound(12), hi: bound(14) };
  if (typeof value === 'number') {
    node.isMixed = value >= MIXED;
    const due = Math.floor((value % MIXED) / 256);
    return { ...node, ended: (value % 256) >> 1, due: () => due };
  }
  const due = (slot) => Math.max(value.readUIntLE(1, 6),
    value.readUIntLE(7, 6) + value.readUInt32LE(13 + 4 * (slot - node.lo)));
  return { ...node, isMixed: true, ended: value[0] >> 1, due };
}
