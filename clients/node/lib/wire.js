// SPDX-License-Identifier: MIT
// What a caller may say, and jobs as packs, as in docs/wire.md.

import { Encoder, encode } from '@msgpack/msgpack';

const ALPHABET =
  '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';
const STEP = '(\\d+(ms|[smhdw]))+';
const RULES = {
  topic: [/^[A-Za-z0-9._:-]{1,40}$/, '1 to 40 of A-Z a-z 0-9 . _ : -'],
  id: [/^[\x22-\x7a|][\x21-\x7a|~]{0,127}$/, '1 to 128 visible ASCII '
    + 'characters without { and }, not beginning with ~ or !'],
  ladder: [new RegExp(`^(none|${STEP}(\\s+${STEP})*(\\s*\\.\\.\\.)?)$`),
    'one such as 15s 3m 10m'],
  time: [/^\d{1,13}$/, 'a whole number of milliseconds from 0'],
  delay: [/^\d{0,13}$/, 'a whole number of milliseconds from 0'],
};
const CALL_JOBS = 1024;
const PACK_BYTES = 248 * 1024; // of records and ids; its header comes besides
const NOTHING = Buffer.alloc(0);
const encoder = new Encoder();

/** The value, if it keeps the rule. */
export function checked(rule, value) {
  const [pattern, text] = RULES[rule];
  if (pattern.test(value)) return value;
  throw new RangeError(`the ${rule} ${JSON.stringify(value)} is not ${text}`);
}

/** A job to add: { index, id, ms, when, options, record }. */
export function newJob(job, index = 0) {
  const { id = '', delayMs = 0, atMs, retry, ttlMs, url, headers } = job;
  const ms = checked('time', atMs ?? delayMs);
  if (id !== '') checked('id', id);
  if (retry !== undefined) checked('ladder', retry);
  if (ttlMs !== undefined) checked('time', ttlMs);
  let options = null;
  if ((retry ?? ttlMs ?? url ?? headers) !== undefined) {
    const all = Object.entries({ retry, ttl_ms: ttlMs, url, headers });
    options = Object.fromEntries(all.filter(([, one]) => one !== undefined));
  }
  const record = [1, 0, 0, 0, 0, 0, options, job.body ?? null];
  return { index, id, ms, when: `${atMs === undefined ? 'r' : 'a'}${ms}`,
    options, record: encoder.encode(record) };
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
