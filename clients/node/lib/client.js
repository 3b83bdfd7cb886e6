// SPDX-License-Identifier: MIT
// Adds jobs, looks at them and deletes them.

import { randomBytes } from 'node:crypto';
import { addOptions, anyIdOf, arrayOf, functionOf, jobOptions, optionsOf,
  prefixOf, timeoutOf, topicOf } from './check.js';
import { encode } from './msgpack.js';
import { Server, WeirError } from './server.js';
import { letters, newJob, packsOf, readRecord, recordIn, writePack }
  from './wire.js';

const YEAR_2020_MS = 1577836800000;
const CALLS = 4; // unanswered at the same time, of an addMany
const CLIENT = { prefix: prefixOf, log: functionOf, timeoutMs: timeoutOf };
const PUSHED = { retry: 'retry', ttlMs: 'ttl_ms', url: 'url', key: 'key',
  priority: 'priority', unique: 'unique', uniqueFor: 'for', uniqueElse: 'else',
  maxWait: 'max_wait' };
const UNITS = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

const withinOf = (call, options) =>
  optionsOf(call, options, { timeoutMs: timeoutOf }).timeoutMs;

/** Digits of one call. A restored machine makes the same random numbers again,
 * but its clock has moved. */
const nonce = () => (randomBytes(4).readUInt32LE()
  ^ Number(process.hrtime.bigint() & 0xffffffffn)) >>> 0;

export class Client {
  #server;
  #most = new Map(); // bytes of a body, by topic
  #producer; // its letters in the names of packs
  #aheadMs; // the server's clock of this one
  #number = 0; // of the last pack
  #callSlot;
  #callSlots = []; // those that no call uses
  #callSlotCount = 0;

  constructor(address, options = {}) {
    this.#server = new Server(address, optionsOf('Client', options, CLIENT));
  }

  async add(topic, body, options = {}) {
    topicOf(topic);
    const { timeoutMs, ...told } = addOptions(options);
    const isPushed = 'id' in told || 'key' in told || 'priority' in told ||
      'unique' in told;
    if (!isPushed) { // in a pack, which a repeat never adds twice
      const [result] = await this.#addPacks(topic, [newJob({ ...told, body })],
                                            timeoutMs);
      return result;
    }
    return this.#push(topic, told, encode(body), timeoutMs);
  }

  async #push(topic, told, body, timeoutMs) {
    const made = randomBytes(12).toString('base64url');
    const { id = made, delayMs = 0, atMs, headers = {}, ...rest } = told;
    await this.#enter(topic, body.length, timeoutMs);
    const pairs = [...Object.entries(rest).map(
      ([name, value]) => [PUSHED[name], value]),
    ...Object.entries(headers).map(
      ([name, value]) => [`header:${name}`, value])].flat();
    const answer = await this.#server.within(timeoutMs).script('delay/push',
      this.#server.keys(topic, 'wait ids meta idle options absent'), topic,
      id, body, atMs === undefined ? `r${delayMs}` : `a${atMs}`, ...pairs);
    const [outcome, other] = answer.map(String);
    if (outcome === 'kind') throw otherKind(topic, other);
    const isOwn = id === made && outcome === 'exists'; // told by a repeat
    return { id: outcome === 'held' ? other : id,
      outcome: isOwn ? 'added' : outcome };
  }

  async addMany(topic, jobs, options = {}) {
    topicOf(topic);
    const timeoutMs = withinOf('addMany', options);
    const made = arrayOf('jobs', jobs).map((job, index) =>
      newJob(jobOptions(job), index));
    return this.#addPacks(topic, made, timeoutMs);
  }

  async #addPacks(topic, jobs, timeoutMs) {
    const { packs, perCall } = packsOf(jobs);
    const longest = jobs.reduce((most, { size }) => Math.max(most, size), 0);
    await this.#enter(topic, longest, timeoutMs);
    const server = this.#server.within(timeoutMs);
    const results = new Array(jobs.length);
    await Promise.all(Array.from({ length: CALLS }, async () => {
      while (packs.length > 0) {
        await this.#addSome(server, topic, packs, perCall, results);
      }
    }));
    return results;
  }

  /** Tells of the topic, once; from then on packs have names. Refuses a body of
   * so many bytes if the topic does not take it. */
  async #enter(topic, size, timeoutMs) {
    const server = this.#server.within(timeoutMs);
    if (!this.#most.has(topic)) {
      await server.command('SADD', `${server.prefix}:topics`, topic);
      const [seconds, us] = await server.command('TIME');
      this.#aheadMs = seconds * 1000 + us / 1000 - Date.now();
      if (!this.#producer) await this.#rename();
    }
    if (!(size <= this.#most.get(topic))) {
      const [key] = server.keys(topic, 'options');
      const told = await server.command('HGET', key, 'max_body') ?? '1M';
      const [, digits, unit] = /^(\d+)([KMG]?)/.exec(told);
      this.#most.set(topic, digits * (UNITS[unit] ?? 1));
    }
    if (size > this.#most.get(topic)) {
      throw new RangeError(`the body has ${size} bytes, and max_body of the `
        + `topic is ${this.#most.get(topic)}`);
    }
  }

  async #rename() {
    const number = await this.#server.command(
      'INCR', `${this.#server.prefix}:producers`);
    this.#producer = letters(number % 8192000, 4);
    this.#callSlot = this.#producer + randomBytes(9).toString('base64url');
  }

  #nextName() {
    const ms = Math.floor(Date.now() + this.#aheadMs) - YEAR_2020_MS;
    this.#number = Math.max(ms * 128, this.#number + 1);
    return letters(this.#number, 8) + this.#producer;
  }

  /** One call, with the first of these. What needs another name waits again. */
  async #addSome(server, topic, waiting, count, results) {
    const packs = waiting.splice(0, count);
    const slot = this.#callSlots.pop() ?? this.#callSlotCount++;
    const keys = server.keys(topic, 'wait ids meta idle seen');
    const stages = packs.map((pack) => {
      pack.name = this.#nextName();
      const [key] = server.keys(topic, `p:${pack.name}`);
      keys.push(key);
      return server.command('SET', key, writePack(pack), 'NX', 'PX', 60000);
    });
    const args = packs.flatMap(({ jobs, headerLength, when }) =>
      [jobs.length, headerLength, when]);
    const number = `${this.#number}.${nonce()}`;
    const repeats = this.#server.repeats;
    const [answer, ...staged] = await Promise.all([
      server.script('delay/add', keys, topic, 'delay',
                    `${this.#callSlot}${slot}`, number, ...args), ...stages]);
    this.#callSlots.push(slot);
    if (answer[0] === -1) throw otherKind(topic, answer[1]);
    for (const { jobs, name } of packs) {
      jobs.forEach(({ index, id }, place) => {
        const made = `@${name}${place.toString(16).padStart(2, '0')}`;
        results[index] = { id: id || made, outcome: 'added' };
      });
    }
    const again = new Set(); // another client has the name of these
    if (this.#server.repeats === repeats) {
      packs.filter((_, i) => !staged[i]).forEach((one) => again.add(one));
    }
    for (let i = 1; i + 1 < answer.length; i += 2) {
      const pack = packs[answer[i]];
      const place = answer[i + 1];
      if (place === -4) packs.forEach((one) => again.add(one));
      if (place === -1) again.add(pack);
      if (place === -1 || place === -4 || again.has(pack)) continue;
      if (place === -3) throw new WeirError('a pack was refused', 'EINVAL');
      if (place < 0) waiting.push(pack);
      else results[pack.jobs[place % 256].index].outcome =
        place < 256 ? 'exists' : 'full';
    }
    if (again.size > 0) await this.#rename();
    waiting.push(...again);
  }

  async topics(options = {}) {
    const server = this.#server.within(withinOf('topics', options));
    const names = await server.command('SMEMBERS', `${server.prefix}:topics`);
    return names.map(String).sort();
  }

  async counts(topic, options = {}) {
    const server = this.#server.within(withinOf('counts', options));
    const flat = await server.script('delay/stats', server.keys(
      topic, 'wait meta dead relay due lease'), 1000);
    const counts = {};
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const value = flat[i + 1];
      counts[flat[i]] = typeof value === 'number' ? value : String(value);
    }
    return counts.kind ? counts : null;
  }

  async look(topic, id, options = {}) {
    return this.#find(topic, anyIdOf(id), 'show', withinOf('look', options));
  }

  async delete(topic, id, options = {}) {
    return this.#find(topic, anyIdOf(id), 'delete',
                      withinOf('delete', options));
  }

  async #find(topic, id, verb, timeoutMs) {
    const server = this.#server.within(timeoutMs);
    const [, name, hex] = /^@([-\w]{12})([0-9a-f]{2})$/.exec(id) ?? [];
    const [ids, rec] = server.keys(topic, 'ids rec');
    const index = await server.command('HGET', ids, id);
    const place = String(index ?? name);
    const keys = server.keys(topic,
      `wait run ids meta p:${place} dead rec idle due absent`);
    const [pack, dead, [told, ms, ended, slot]] = await Promise.all([
      server.command('GET', keys[4]), server.command('HGET', rec, id),
      server.script('delay/slot', keys, verb, id, place,
                    index ? '' : Number.parseInt(hex ?? '0', 16))]);
    const state = String(told);
    if (state === 'moved') return this.#find(topic, id, verb, timeoutMs);
    if (state === 'none') return null;
    if (state === 'tick') {
      throw new WeirError(`${id} is the tick of a schedule, which stays: `
        + 'delete the schedule by weir cron delete', 'EINVAL');
    }
    const record = state === 'dead' ? dead : pack && recordIn(pack, slot);
    const { crashes = 0, options = {}, ...rest } =
      record ? readRecord(record) : {};
    return { id, topic, state, ...rest, crashes: crashes + ended, options,
      dueMs: state === 'ready' || state === 'scheduled' ? ms : undefined,
      diedMs: state === 'dead' ? ms : undefined };
  }

  close = () => this.#server.close();
}

function otherKind(topic, kind) {
  return new WeirError(`the topic ${topic} is of the kind ${kind}`, 'EKIND');
}
