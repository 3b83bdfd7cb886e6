// SPDX-License-Identifier: MIT
// What a handler sees of a job, and what it may say of it.

import { Decoder } from '@msgpack/msgpack';
import { checked } from './wire.js';

const decoder = new Decoder();

export class Retry extends Error {
  constructor(message = 'retry', { delayMs } = {}) {
    super(message);
    this.delayMs = checked('delay', delayMs ?? '');
  }
}

export class Snooze extends Error {
  constructor(delayMs) {
    super('snoozed');
    this.delayMs = checked('time', delayMs);
  }
}

export class Fail extends Error {}

/** What finish.lua is told of a run that threw, or returned, this. */
export function verdictOf(error) {
  try {
    const why = String(error?.message || error || 'retry').slice(0, 200);
    if (error instanceof Fail) return ['fail', '', why];
    const { delayMs } = error ?? {};
    if (error instanceof Snooze) return ['snooze', checked('time', delayMs)];
    const ms = error instanceof Retry ? delayMs : '';
    return ['retry', checked('delay', ms), why];
  } catch {
    return ['retry', '', 'its text or delay is none'];
  }
}

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
    const [dueMs, attempt, , , crashes, , options, addedMs] =
      decoder.decode(this.#facts);
    const { url, headers = {} } = options ?? {};
    Object.assign(this, { dueMs, attempt: attempt + 1, crashes, url, headers,
      addedMs, body: decoder.decode(this.raw) });
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
