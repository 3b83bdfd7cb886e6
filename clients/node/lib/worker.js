// SPDX-License-Identifier: MIT
// A worker: topics with their handlers, until it is stopped.

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { encode } from '@msgpack/msgpack';
import { Lane } from './lane.js';
import { Server, connect } from './server.js';
import { checkTopic } from './wire.js';

const BEAT_MS = 5000;
const LAST_CALLS_MS = 5000;

export class Worker {
  /** `topics`: by name a handler, or { handle, concurrency }. */
  constructor(address, topics, options = {}) {
    this.log = options.log ?? console.error;
    this.drainMs = options.drainMs ?? 30000;
    this.name = `${hostname().replace(/[^\w.-]/g, '-').slice(0, 20)}-${
      process.pid}-${randomBytes(4).toString('hex')}`;
    this.address = address;
    this.isStopping = false;
    this.stopped = new Promise((resolve) => { this.tellStopped = resolve; });
    this.late = new Promise((resolve) => { this.tellLate = resolve; });
    for (const topic of Object.keys(topics)) checkTopic(topic);
    this.server = new Server(address, options);
    this.lanes = new Map(Object.entries(topics).map(([topic, handler]) =>
      [topic, new Lane(this, topic, typeof handler === 'function'
        ? { handle: handler } : handler)]));
  }

  /** Works until stop() or one of `signals`, then finishes what runs. */
  async run({ signals = ['SIGTERM', 'SIGINT'] } = {}) {
    const onSignal = () => this.stop();
    const beats = setInterval(() => this.#beat(), BEAT_MS);
    this.sinceMs = Date.now();
    for (const signal of signals) process.on(signal, onSignal);
    try {
      this.#listen();
      this.server.redis.on('ready', () => this.#beat());
      for (const lane of this.lanes.values()) lane.start();
      await this.stopped;
      await this.#drain();
    } finally {
      clearInterval(beats);
      for (const signal of signals) process.off(signal, onSignal);
      this.ears.disconnect();
      this.server.close();
    }
  }

  /** run() claims no more, and returns when what runs is over, or after
   * `drainMs`, or when this is called again: then that is given back. */
  stop() {
    if (this.isStopping) this.tellLate();
    this.isStopping = true;
    this.tellStopped();
  }

  #listen() {
    this.ears = connect(this.address, { maxRetriesPerRequest: null,
      autoResubscribe: false });
    this.ears.on('error', () => {}); // the other connection tells it
    this.ears.on('message', (_, message) =>
      this.lanes.get(message.split(' ', 1)[0])?.wake());
    this.ears.on('ready', () => {
      this.ears.subscribe(`${this.server.prefix}:wake:${this.name}`).then(
        // What was said before was not heard.
        () => this.lanes.forEach((lane) => lane.wake()),
        (error) => {
          if (!this.isStopping) this.log(`subscribe: ${error.message}`);
        });
    });
  }

  /** One suspect after the other, of all topics. */
  async runSuspects() {
    if (this.isRunningSuspects) return;
    this.isRunningSuspects = true;
    for (let hasRun = true; hasRun && !this.isStopping;) {
      hasRun = false;
      for (const lane of this.lanes.values()) {
        try {
          hasRun = await lane.runSuspect() || hasRun;
        } catch (error) {
          lane.complain(`start: ${error.message}`);
          hasRun = true;
          await sleep(50);
        }
      }
    }
    this.isRunningSuspects = false;
  }

  async #drain() {
    const timer = setTimeout(this.tellLate, this.drainMs);
    const cut = this.late.then(() => sleep(LAST_CALLS_MS, undefined,
                                           { ref: false }))
      .then(() => { throw new Error('the server takes no verdicts'); });
    cut.catch(() => {});
    try {
      await Promise.race([cut, Promise.all([...this.lanes.values()].map(
        (lane) => lane.drain(this.late)))]);
      await this.server.command('HDEL', this.#workersKey, this.name);
    } finally {
      clearTimeout(timer);
    }
  }

  get #workersKey() {
    const { prefix } = this.server;
    return `${prefix}:{${prefix}:topics}:workers`;
  }

  /** Tells what it is, for `weir workers`. */
  async #beat() {
    const lanes = [...this.lanes.values()];
    const sum = (count) => lanes.reduce((all, lane) => all + count(lane), 0);
    const running = sum((lane) => lane.running.size);
    const map = { name: this.name, host: hostname(), version: 'node',
      transport: this.server.redis.options.path ? 'unix' : 'tcp',
      pid: process.pid, topics_total: lanes.length,
      topics: [...this.lanes.keys()], running, connections: 2, lag_us: 0,
      held: running + sum((lane) => lane.suspects.length),
      since_ms: this.sinceMs, stopping: this.isStopping };
    try {
      await this.server.script('beat', [this.#workersKey],
                               [this.name, Buffer.from(encode(map))]);
    } catch { /* the next one may arrive */ }
  }
}
