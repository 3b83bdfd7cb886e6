// SPDX-License-Identifier: MIT
// Adds jobs, looks at them and deletes them.

import { randomBytes } from 'node:crypto';
import { decode, encode } from '@msgpack/msgpack';
import { Server, WeirError } from './server.js';
import { checked, letters, newJob, packsOf, recordIn, writePack }
  from './wire.js';

const YEAR_2020_MS = 1577836800000;
const CALLS = 4; // unanswered at the same time, of an addMany

export class Client {
  #server;
  #topics = new Set(); // those that were told
  #producer; // its letters in the names of packs
  #aheadMs; // the server's clock of this one
  #number = 0; // of the last pack
  #callSlot;
  #callSlots = []; // those that no call uses
  #callSlotCount = 0;

  constructor(address, options) {
    this.#server = new Server(address, options);
  }

  async add(topic, body, options = {}) {
    if (!options.id) { // in a pack, which a repeat never adds twice
      const [result] = await this.addMany(topic, [{ ...options, body }]);
      return result;
    }
    const job = newJob({ ...options, body });
    await this.#enter(topic);
    const { headers = {}, ...rest } = job.options ?? {};
    const pairs = [...Object.entries(rest), ...Object.entries(headers).map(
      ([name, value]) => [`header:${name}`, value])].flat();
    const answer = await this.#server.script('delay/push',
      this.#server.keys(topic, 'wait ids meta idle options absent'), topic,
      job.id, Buffer.from(encode(body ?? null)), job.when, ...pairs);
    const [outcome, other] = answer.map(String);
    if (outcome === 'kind') throw otherKind(topic, other);
    return { id: outcome === 'held' ? other : job.id, outcome };
  }

  async addMany(topic, jobs) {
    const { packs, perCall } = packsOf(jobs.map(newJob));
    await this.#enter(topic);
    const results = new Array(jobs.length);
    await Promise.all(Array.from({ length: CALLS }, async () => {
      while (packs.length > 0) {
        await this.#addSome(topic, packs, perCall, results);
      }
    }));
    return results;
  }

  /** Tells of the topic, once; from then on packs have names. */
  async #enter(topic) {
    checked('topic', topic);
    if (this.#topics.has(topic)) return;
    const server = this.#server;
    await server.command('SADD', `${server.prefix}:topics`, topic);
    const [seconds, us] = await server.command('TIME');
    this.#aheadMs = seconds * 1000 + us / 1000 - Date.now();
    if (!this.#producer) await this.#rename();
    this.#topics.add(topic);
  }

  async #rename() {
    const number = await this.#server.command(
      'INCR', `${this.#server.prefix}:producers`);
    this.#producer = letters(number % 2 ** 23, 4);
    this.#callSlot = randomBytes(9).toString('base64url');
  }

  #nextName() {
    const ms = Math.floor(Date.now() + this.#aheadMs) - YEAR_2020_MS;
    this.#number = Math.max(ms * 128, this.#number + 1);
    return letters(this.#number, 8) + this.#producer;
  }

  /** One call, with the first of these. What needs another name waits again. */
  async #addSome(topic, waiting, count, results) {
    const server = this.#server;
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
    // Not randomInt, which keeps random numbers in memory: a restored machine
    // would use them again.
    const number = `${this.#number}.${randomBytes(4).readUInt32LE()}`;
    const { repeats } = server;
    const [answer, ...staged] = await Promise.all([server.script('delay/add', keys, topic,
      'delay', `${this.#callSlot}${slot}`, number, ...args), ...stages]);
    this.#callSlots.push(slot);
    if (answer[0] === -1) throw otherKind(topic, answer[1]);
    for (const { jobs, name } of packs) {
      jobs.forEach(({ index, id }, place) => {
        const made = `~${name}${place.toString(16).padStart(2, '0')}`;
        results[index] = { id: id || made, outcome: 'added' };
      });
    }
    const again = new Set(); // another client has the name of these
    if (server.repeats === repeats) {
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

  async topics() {
    const key = `${this.#server.prefix}:topics`;
    const names = await this.#server.command('SMEMBERS', key);
    return names.map(String).sort();
  }

  async counts(topic) {
    const flat = await this.#server.script('delay/stats', this.#server.keys(
      topic, 'wait meta dead relay due lease'), 1000);
    const counts = {};
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const value = flat[i + 1];
      counts[flat[i]] = typeof value === 'number' ? value : String(value);
    }
    return counts.kind ? counts : null;
  }

  look = (topic, id) => this.#find(topic, id, 'show');

  delete = (topic, id) => this.#find(topic, id, 'delete');

  async #find(topic, id, verb) {
    const server = this.#server;
    const [, name, hex] = /^~([-\w]{12})([0-9a-f]{2})$/.exec(id) ?? [];
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
    if (state === 'moved') return this.#find(topic, id, verb);
    if (state === 'none') return null;
    const record = state === 'dead' ? dead : pack && recordIn(pack, slot);
    const [, attempt, failures, timeouts, crashes = 0, snoozes, options, body] =
      record ? decode(record) : [];
    return { id, topic, state, attempt, failures, timeouts,
      crashes: crashes + ended, snoozes, options: options ?? {}, body,
      dueMs: state === 'ready' || state === 'scheduled' ? ms : undefined,
      diedMs: state === 'dead' ? ms : undefined };
  }

  close = () => this.#server.close();
}

function otherKind(topic, kind) {
  return new WeirError(`the topic ${topic} is of the kind ${kind}`, 'EKIND');
}
