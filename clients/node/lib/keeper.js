// SPDX-License-Identifier: MIT
// Leases are renewed while a handler holds the event loop: by a thread that
// reads in shared memory what each lane has in hand.

import { Worker } from 'node:worker_threads';

export const MOST = 1024; // tokens of a lane
export const FIRST = 5; // of them, behind these
const [BEATS, LEASE, TIMEOUT, COUNT, RENEWALS] = [0, 1, 2, 3, 4];

/** Notes of a lane for its thread. A token that has ended does no harm. */
export class Notes {
  shared = new Float64Array(new SharedArrayBuffer(8 * (FIRST + MOST)));

  /** A claim was pulled. */
  add(token, leaseMs, timeoutMs) {
    const { shared } = this;
    shared[LEASE] = leaseMs;
    shared[TIMEOUT] = timeoutMs;
    if (shared[COUNT] < MOST) shared[FIRST + shared[COUNT]++] = token;
    shared[BEATS]++;
  }

  /** The event loop renews all claims. */
  renew(tokens, leaseMs) {
    const { shared } = this;
    const some = [...tokens].slice(0, MOST);
    shared[LEASE] = leaseMs;
    shared.set(some, FIRST);
    shared[COUNT] = some.length;
    shared[BEATS]++;
    shared[RENEWALS]++;
  }

  clear() {
    this.shared[COUNT] = 0;
  }
}

export class Keeper {
  #thread;

  constructor(address, { prefix, log }, lanes) {
    const told = lanes.map(({ keys, notes }) =>
      ({ keys: [keys[2], keys[6]], shared: notes.shared }));
    const cannot = ({ message }) => log('no lease is renewed while a handler '
      + `holds the event loop: ${message}`);
    try {
      this.#thread = new Worker(new URL('keeper_thread.js', import.meta.url),
                                { workerData: { address, prefix, told } });
      this.#thread.on('error', cannot);
      this.#thread.unref();
    } catch (error) { // options of ioredis with a function cannot be sent
      cannot(error);
    }
  }

  end() {
    this.#thread?.terminate();
  }
}
