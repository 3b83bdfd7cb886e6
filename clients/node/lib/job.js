// SPDX-License-Identifier: MIT
// What a handler sees of a job, what it may say of it, and what then becomes of
// the job.

import { decode } from '@msgpack/msgpack';
import { changedRecord, checkMs, listOf, madeMs, optionOf, retryDelay }
  from './wire.js';

const ERROR_BYTES = 512;
const FIRST_PACK = 11; // of the keys of settle.lua, counted from 1
const OF_MIXED = 65536;
const BACK_MIXED = 2 ** 45;

/** Thrown or returned by a handler: the job runs again, after its ladder's
 * delay or this one. Other errors mean the same. */
export class Retry extends Error {
  constructor(message = 'retry', { delayMs } = {}) {
    super(message);
    this.delayMs = delayMs && checkMs('delayMs', delayMs);
  }
}

/** Thrown or returned by a handler: the job runs again later, without a
 * failure. */
export class Snooze extends Error {
  constructor(delayMs) {
    super('snoozed');
    this.delayMs = checkMs('delayMs', delayMs);
  }
}

/** Thrown or returned by a handler: the job is dead. */
export class Fail extends Error {}

export class Timeout extends Error {}

export class Job {
  #controller;

  /** `place`: { lane, claim, node, slot, pack }. */
  constructor(place, id, record) {
    this.place = place;
    this.id = id;
    this.record = record;
    this.dueMs = place.node.due(place.slot);
    this.isOver = false;
    this.reason = undefined; // why it was canceled
  }

  get topic() {
    return this.place.lane.topic;
  }

  /** Of its claim: grows with each run of a job. */
  get token() {
    return this.place.claim.token;
  }

  /** From 1. */
  get attempt() {
    return this.record.attempt + 1;
  }

  get crashes() {
    return this.record.crashes + this.place.node.ended;
  }

  get body() {
    return decode(this.record.body);
  }

  /** The body's msgpack. */
  get raw() {
    return this.record.body;
  }

  get url() {
    return optionOf(this.record, 'url');
  }

  get headers() {
    return optionOf(this.record, 'headers') ?? {};
  }

  get addedMs() {
    return optionOf(this.record, 'added_ms') ?? madeMs(this.place.node.name);
  }

  /** Aborted when the verdict does not count any more: by the timeout, a lost
   * lease, or a worker that has waited long enough for its end. */
  get signal() {
    this.#controller ??= new AbortController();
    if (this.reason) this.#controller.abort(this.reason);
    return this.#controller.signal;
  }

  cancel(reason) {
    this.isOver = true;
    this.reason = reason;
    this.#controller?.abort(reason);
  }
}

// --- verdicts ----------------------------------------------------------------

function textOf(error) {
  const bytes = Buffer.from(String(error?.message || error || 'retry'));
  let end = Math.min(bytes.length, ERROR_BYTES);
  while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** That a job goes as `kind` (dead, snooze, retry), with what changes of its
 * record. */
export function verdictOf(job, kind, counters, options, delayMs) {
  const { node } = job.place;
  return { job, kind, when: `r${delayMs}`, record: changedRecord(job.record,
    madeMs(node.name), { crashes: node.ended, ...counters }, options) };
}

/** The verdict for a run that threw, or returned, this. */
export function verdictOfError(job, thrown, options) {
  if (thrown instanceof Snooze) {
    return verdictOf(job, 'snooze', { snoozes: 1 }, {}, thrown.delayMs);
  }
  const error = textOf(thrown);
  const ladderMs = retryDelay(job.record, options);
  const isDead = thrown instanceof Fail || ladderMs < 0;
  const reason = thrown instanceof Fail ? 'failed' : 'exhausted';
  return verdictOf(job, isDead ? 'dead' : 'retry', { attempt: 1, failures: 1,
    timeouts: thrown instanceof Timeout ? 1 : 0 },
  isDead ? { reason, error } : { error }, thrown?.delayMs ?? ladderMs);
}

/** Keys and arguments of settle.lua for verdicts of a topic; `counts`: how many
 * of each claim. */
export function settleCall(server, topic, verdicts, maxDead) {
  const groups = new Map(); // of what ended, by node
  const backs = new Map(); // of what did not begin
  const counts = new Map();
  const moves = [];
  const ends = [];
  for (const { job, kind, record = '', when } of verdicts) {
    const { node, claim, slot, pack } = job.place;
    counts.set(claim, (counts.get(claim) ?? 0) + 1);
    const of = kind === 'back' ? backs : groups;
    if (!of.has(node)) {
      of.set(node, { node, claim, index: of.size, slots: [],
        headerLength: pack?.headerLength ?? 8 });
    }
    of.get(node).slots.push(slot);
    const source = of.get(node).index * 256 + slot;
    if (kind === 'retry' || kind === 'snooze') {
      moves.push(record, 1, job.id, when, kind === 'retry' ? 1 : 0, [source],
                 '');
    } else if (kind === 'dead' || kind === 'expired') {
      ends.push(source, job.id, record);
    }
  }
  const nodes = [...groups.values()].flatMap(
    ({ node, claim, index, slots, headerLength }) =>
      [FIRST_PACK + index + (node.isMixed ? OF_MIXED : 0), node.text,
        claim.token, headerLength, slots.length > node.hi - node.lo ? ''
          : String.fromCharCode(...slots)]);
  const back = [...backs.values()].flatMap(({ node, claim, slots }) =>
    [node.text, claim.token, node.due(slots[0])
      + (node.isMixed ? BACK_MIXED : 0), String.fromCharCode(...slots)]);
  const closed = [...counts].filter(([claim, count]) => claim.left === count)
    .map(([claim]) => claim.token);
  const names = `run lease ids meta wait dead rec idle held due ${
    [...groups.keys()].map(({ name }) => `p:${name} `).join('')}absent`;
  return { counts, keys: server.keys(topic, names), args: [topic,
    ...[nodes, back, closed, moves, ends].map(listOf), maxDead, 0] };
}
