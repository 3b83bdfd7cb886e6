// SPDX-License-Identifier: MIT
// What a handler sees of a job, and what it may say of it.

import { laterOf } from './check.js';
import { decode } from './msgpack.js';

export class Retry extends Error {
  constructor(message = 'retry', { delayMs } = {}) {
    super(message);
    if (delayMs !== undefined) laterOf('delayMs', delayMs);
    this.delayMs = delayMs;
  }
}

export class Snooze extends Error {
  constructor(delayMs) {
    super('snoozed');
    this.delayMs = laterOf('delayMs', delayMs);
  }
}

export class Fail extends Error {}

const SHORT_MS = 1000; // until a job that lacked something runs again
const SHORT = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM',
  'ERR_MEMORY_ALLOCATION_FAILED']);

/** Was it thrown since this worker lacks descriptors, memory or processes? */
function isShort(error) {
  for (let one = error, i = 0; one && i < 16; one = one.cause, i++) {
    if (SHORT.has(one.code) || (one instanceof RangeError &&
        one.message === 'Array buffer allocation failed')) return true;
  }
  return false;
}

/** Where an error was raised, as its stack says. */
function frameOf({ stack }) {
  const [, file, line] = /\n +at [^\n]*?([^/\\\n(]{1,60}):(\d+):\d+\)?(?:\n|$)/
    .exec(stack) ?? [];
  return file ? ` (${file}:${line})` : '';
}

/** At most so many bytes of a text. */
const cut = (text, most) => Buffer.from(text).subarray(0, most)
  .toString().replace(/\ufffd+$/, '');

/** What finish.lua gets of a run that threw, or returned, this. 200 bytes of
 * the reason are kept, with the place at its end. */
export function verdictOf(error) {
  try {
    if (isFault(error) && isShort(error)) return ['snooze', SHORT_MS];
    const isError = error instanceof Error && isFault(error);
    const frame = isError ? frameOf(error) : '';
    const text = isError ? `${error.name}: ${error.message}`
      : String(error?.message || error || 'retry');
    const why = cut(text, 200 - Buffer.byteLength(frame)) + frame;
    if (error instanceof Fail) return ['fail', '', why];
    const { delayMs } = error ?? {};
    if (error instanceof Snooze) return ['snooze', laterOf('delayMs', delayMs)];
    const hasDelay = error instanceof Retry && delayMs !== undefined;
    return ['retry', hasDelay ? laterOf('delayMs', delayMs) : '', why];
  } catch {
    return ['retry', '', 'its text or delay is none'];
  }
}

/** Is what a handler threw a fault, and no verdict? */
export const isFault = (error) => !(error instanceof Retry ||
  error instanceof Fail || error instanceof Snooze);

export class Job {
  timeoutAt = Infinity; // it does not run yet
  #facts;

  /** The last one is what pull.lua says of it. */
  constructor(topic, token, [handle, id, raw, facts]) {
    this.#facts = facts;
    Object.assign(this, { topic, token, handle: handle.latin1Slice(),
      id: id.latin1Slice(), raw });
  }

  /** Throws where options or body are no msgpack that JavaScript can have. */
  decode() {
    const [dueMs, attempt, failures, timeouts, crashes, snoozes, options,
      addedMs] = decode(this.#facts);
    const { url, headers = {} } = options ?? {};
    Object.assign(this, { dueMs, attempt: attempt + 1, failures, timeouts,
      crashes, snoozes, url, headers, addedMs, body: decode(this.raw) });
  }

  get signal() {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  /** Its verdict does not count any more. */
  abort(reason) {
    this.controller ??= new AbortController();
    this.controller.abort(new Error(reason));
  }
}
