// SPDX-License-Identifier: MIT
// A worker: topics with their handlers, until it is stopped.

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { functionOf, optionsOf, prefixOf, topicOf, topicsOf, whole }
  from './check.js';
import { Keeper } from './keeper.js';
import { Lane } from './lane.js';
import { encode } from './msgpack.js';
import { Server } from './server.js';

const BEAT_MS = 5000;
const LAST_CALLS_MS = 5000;
const OPTIONS = { prefix: prefixOf, log: functionOf,
  drainMs: whole(0, 86400000, ' of milliseconds') };
const SERVING = { handle: functionOf, concurrency: whole(1, 100000) };

/** Handlers by topic, checked: { topic: { handle, concurrency } }. */
function servingOf(topics) {
  return topicsOf(topics).map(([topic, one]) => {
    topicOf(topic);
    const told = typeof one === 'function' ? { handle: one }
      : optionsOf(`the topic ${topic}`, one, SERVING);
    functionOf(`handler of ${topic}`, told.handle);
    if (/Generator/.test(Object.prototype.toString.call(told.handle))) {
      throw new RangeError(`the handler of ${topic} is a generator, which `
        + 'nothing runs');
    }
    return [topic, told];
  });
}

export class Worker {
  isStopping = false;
  #lateAt = Infinity; // when what ran was given back
  #timer;
  ring = () => {}; // says that something changed

  constructor(address, topics, options = {}) {
    this.address = address;
    const serving = servingOf(topics);
    const { drainMs = 30000, ...told } = optionsOf('Worker', options, OPTIONS);
    this.drainMs = drainMs;
    this.name = `${hostname().replace(/[^\w.-]/g, '-').slice(0, 20)}-${
      process.pid}-${randomBytes(4).toString('hex')}`;
    this.server = new Server(address, { ...told, repeatMs: 500 });
    this.lanes = serving.map(([topic, one]) => new Lane(this, topic, one));
  }

  async run({ signals = ['SIGTERM', 'SIGINT'] } = {}) {
    const key = `${this.server.prefix}:{${this.server.prefix}:topics}:workers`;
    const sinceMs = Date.now();
    const beats = setInterval(() => this.#beat(key, sinceMs), BEAT_MS);
    const ears = this.#listen();
    const keeper = new Keeper(this.address, this.server, this.lanes);
    this.#beat(key, sinceMs);
    for (const signal of signals) process.on(signal, this.stop);
    try {
      await this.server.command('SADD', `${this.server.prefix}:topics`,
                                ...this.lanes.map(({ topic }) => topic));
      await this.#work();
      clearInterval(beats);
      await this.server.within(LAST_CALLS_MS).command('HDEL', key, this.name);
    } finally {
      for (const signal of signals) process.off(signal, this.stop);
      clearInterval(beats);
      clearTimeout(this.#timer);
      ears.disconnect();
      keeper.end();
      this.server.close();
    }
  }

  stop = () => {
    if (this.isStopping) {
      this.#lateAt = performance.now();
      for (const lane of this.lanes) lane.giveBack('the worker stops');
    } else {
      this.isStopping = true;
      setTimeout(this.stop, this.drainMs).unref();
    }
    this.ring();
  };

  /** Until it is stopped and has nothing in hand. */
  async #work() {
    const { lanes } = this;
    const isBusy = ({ inHand, out }) => inHand.size + out.size > 0;
    while (!this.isStopping || lanes.some(isBusy)) {
      await this.#change(Math.min(...lanes.map(({ waitMs }) => waitMs)));
      await new Promise(setImmediate); // more changes
      for (const lane of lanes) lane.act();
      lanes.push(lanes.shift()); // another one may bring a suspect
      if (performance.now() > this.#lateAt + LAST_CALLS_MS) {
        throw new Error('the server takes no verdicts');
      }
    }
    const last = this.server.within(LAST_CALLS_MS);
    await Promise.all(lanes.map(({ keys }) =>
      last.command('ZREM', keys[5], this.name)));
  }

  /** What pull.lua is told of all topics: 2, no other suspect may come. */
  get inHand() {
    const mayCome = ({ suspect, mayBring, out }) =>
      suspect || mayBring && out.has('pull');
    if (this.lanes.some(mayCome)) return 2;
    return Number(this.lanes.some(({ inHand }) => inHand.size > 0));
  }

  /** Resolves after so many ms, or when it rings. */
  #change(ms) {
    clearTimeout(this.#timer);
    return new Promise((resolve) => {
      this.ring = resolve;
      if (ms <= 0) resolve();
      else this.#timer = setTimeout(resolve, Math.min(ms, 60000));
    });
  }

  /** Pulls now, of one topic or of all. */
  wake(topic) {
    for (const lane of this.lanes) {
      if (!topic || lane.topic === topic) lane.pullAt = 0;
    }
    this.ring();
  }

  #listen() {
    const ears = this.server.redis.duplicate({ maxRetriesPerRequest: null,
      autoResubscribe: false });
    ears.on('error', () => {}); // the other connection tells it
    ears.on('message', (_, message) => this.wake(message.split(' ')[0]));
    ears.on('ready', () => {
      ears.subscribe(`${this.server.prefix}:wake:${this.name}`).then(
        () => this.wake(), // what was said before was not heard
        ({ message }) => this.server.log(`subscribe: ${message}`));
    });
    return ears;
  }

  /** Tells what it is, for `weir workers`. */
  #beat(key, sinceMs) {
    const { lanes } = this;
    const running = lanes.reduce((sum, lane) => sum + lane.running.size, 0);
    const map = { name: this.name, host: hostname(), version: 'node',
      transport: this.server.redis.options.path ? 'unix' : 'tcp',
      pid: process.pid, topics: lanes.map(({ topic }) => topic),
      topics_total: lanes.length, running, held: running, connections: 3,
      since_ms: sinceMs, stopping: this.isStopping };
    this.server.script('store/beat', [key], this.name,
                       encode(map, 'beat')).catch(() => {});
  }
}
