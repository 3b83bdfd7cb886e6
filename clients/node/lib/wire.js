// SPDX-License-Identifier: MIT
// Jobs as packs, as in docs/wire.md.

import { Reader, encode } from './msgpack.js';

const ALPHABET =
  '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';
const CALL_JOBS = 1024;
const PACK_BYTES = 248 * 1024; // of records and ids; its header comes besides
const NOTHING = Buffer.alloc(0);
const NEW = Buffer.from([0x98, 1, 0, 0, 0, 0, 0]); // version and counters
const NIL = Buffer.from([0xc0]);

/** A job to add, of options that were checked: { index, id, ms, when, size,
 * record }, where size is that of its body. */
export function newJob(told, index = 0) {
  const { id = '', delayMs = 0, atMs, retry, ttlMs, url, headers } = told;
  const options = Object.entries({ retry, ttl_ms: ttlMs, url, headers })
    .filter(([, one]) => one !== undefined);
  const body = encode(told.body);
  const ms = atMs ?? delayMs;
  return { index, id, ms, when: `${atMs === undefined ? 'r' : 'a'}${ms}`,
    size: body.length, record: Buffer.concat([NEW, options.length > 0
      ? encode(Object.fromEntries(options), 'options') : NIL, body]) };
}

/** A number in so many characters of six bits. */
export const letters = (value, count) => (count === 0 ? ''
  : letters(Math.floor(value / 64), count - 1) + ALPHABET[value % 64]);

/** Jobs as packs, and how many of these a call may have. In a pack all have an
 * id or none; where times differ they are 16 at most. */
export function packsOf(jobs) {
  const packs = [];
  const open = {}; // by what their jobs have in common
  const isSame = jobs.every(({ when }) => when === jobs[0].when);
  const most = isSame ? 256 : 16;
  for (const job of jobs) {
    const kind = job.when[0] + (job.id === '');
    if (!open[kind] || open[kind].jobs.length === most ||
        open[kind].size + job.record.length > PACK_BYTES) {
      open[kind] = { jobs: [], size: 0 };
      packs.push(open[kind]);
    }
    open[kind].jobs.push(job);
    open[kind].size += job.record.length + job.id.length;
  }
  return { packs, perCall: CALL_JOBS / most };
}

/** The bytes of a pack; it gets what add.lua is told of it. */
export function writePack(pack) {
  const { jobs } = pack;
  const ids = jobs[0].id === '' ? NOTHING : encode(jobs.map(({ id }) => id));
  pack.headerLength = 8 + ids.length;
  pack.when = jobs[0].when;
  if (jobs.some(({ when }) => when !== pack.when)) {
    pack.when = Buffer.concat([Buffer.from(pack.when[0] === 'r' ? 'p' : 'q'),
      encode(jobs.map(({ ms }) => ms))]);
  }
  const head = Buffer.from([0x57, 0x31, jobs.length - 1, 0,
    ids.length > 0 ? 1 : 0, 0, 0, 0]);
  head.writeUIntLE(pack.headerLength, 5, 3);
  const table = Buffer.alloc(4 * (jobs.length + 1));
  let end = 0;
  jobs.forEach(({ record }, i) => {
    end += record.length;
    table.writeUInt32LE(end, 4 * (i + 1));
  });
  return Buffer.concat([head, ids, table, ...jobs.map(({ record }) => record)]);
}

/** The record of a job in a pack. */
export function recordIn(pack, slot) {
  const at = pack.readUIntLE(5, 3) + 4 * slot;
  const first = at + 4 * (pack[2] + 2 - slot);
  return pack.subarray(first + pack.readUInt32LE(at),
                       first + pack.readUInt32LE(at + 4));
}

/** What a record says, and why its body cannot be read, if so. */
export function readRecord(record) {
  const reader = new Reader(record, 1);
  const [, attempt, failures, timeouts, crashes, snoozes, options] =
    Array.from({ length: 7 }, () => reader.value());
  const told = { attempt, failures, timeouts, crashes, snoozes,
    options: options ?? {} };
  try {
    told.body = reader.value();
    reader.end();
  } catch ({ message }) {
    told.malformed = message;
  }
  return told;
}
