// SPDX-License-Identifier: MIT
// Adds jobs, looks at them and deletes them.

import { decode, encode } from '@msgpack/msgpack';
import { Names, checkTopic, madeId, newJob, packsOf, readPack, readRecord,
  writePack } from './wire.js';
import { Server, WeirError } from './server.js';

const CALL = { jobs: 1024, packs: 64, bytes: 1024 * 1024 };
const CALLS = 4; // unanswered at the same time, of an addMany

export class Client {
  #server;
  #topics = new Map(); // those that were told, by name a promise
  #names; // a promise of them
  #callSlots = []; // those that no call uses
  #callSlotCount = 0;

  constructor(address = 'redis://127.0.0.1', options = {}) {
    this.#server = new Server(address, options);
  }

  // --- adding ----------------------------------------------------------------

  /** Adds a job: { id, outcome }. Without an id it goes as a pack: then a
   * repeat never adds it twice. */
  async add(topic, body, options = {}) {
    if (!options.id) {
      const [result] = await this.addMany(topic, [{ ...options, body }]);
      return result;
    }
    const job = newJob({ ...options, body });
    await this.#know(topic);
    const { headers = {}, ...rest } = job.options ?? {};
    const pairs = [...Object.entries(rest), ...Object.entries(headers).map(
      ([name, value]) => [`header:${name}`, value])].flat();
    const keys = this.#server.keys(topic, 'wait ids meta idle options absent');
    const bytes = Buffer.from(encode(body ?? null));
    const [outcome, told] = await this.#server.repeat(() => this.#server.script(
      'push', keys, [topic, job.id, bytes, `${job.form}${job.ms}`, ...pairs]));
    if (String(outcome) === 'kind') throw otherKind(topic, told);
    return { id: job.id, outcome: String(outcome) };
  }

  /** Adds jobs, { body, id, delayMs, ... }, as packs; results in their order.
   * Where it throws a part of them may have been added. */
  async addMany(topic, jobs) {
    const all = jobs.map(newJob);
    await this.#know(topic);
    const results = new Array(jobs.length);
    const calls = callsOf(packsOf(all)).values();
    await Promise.all(Array.from({ length: CALLS }, async () => {
      for (const packs of calls) await this.#addPacks(topic, packs, results);
    }));
    return results;
  }

  /** Sees to it that the topic is known, and that packs have names. */
  async #know(topic) {
    checkTopic(topic);
    const { prefix } = this.#server;
    if (!this.#topics.has(topic)) {
      this.#topics.set(topic, this.#server.repeat(() => this.#server.command(
        'SADD', `${prefix}:topics`, topic)));
    }
    this.#names ??= this.#server.repeat(() => this.#server.command(
      'INCR', `${prefix}:producers`)).then((number) => {
      const names = new Names(number);
      names.callSlot = names.next(this.#server.now());
      return names;
    });
    try {
      await Promise.all([this.#topics.get(topic), this.#names]);
    } catch (error) {
      this.#topics.delete(topic);
      this.#names = undefined;
      throw error;
    }
  }

  /** One call, until it is answered; then another one with the packs that need
   * another name. */
  async #addPacks(topic, packs, results) {
    const names = await this.#names;
    const server = this.#server;
    const slot = this.#callSlots.pop() ?? this.#callSlotCount++;
    const bytes = packs.map(writePack);
    for (const pack of packs) pack.name = names.next(server.now());
    const { number } = names;
    const own = packs.map(({ name }) => server.key(topic, `p:${name}`));
    const keys = [...server.keys(topic, 'wait ids meta idle seen'), ...own];
    const args = [topic, 'delay', `${names.callSlot}${slot}`, number,
      ...packs.flatMap(({ jobs, headerLength, when }) =>
        [jobs.length, headerLength, when])];
    const answer = await server.repeat(async () => {
      const stages = own.map((key, i) =>
        server.command('SET', key, bytes[i], 'NX', 'PX', 60000));
      return (await Promise.all([server.script('add', keys, args),
        ...stages]))[0];
    });
    this.#callSlots.push(slot);
    if (answer[0] === -1) throw otherKind(topic, answer[1]);
    const again = readAnswer(packs, answer, results);
    if (again.length > 0) await this.#addPacks(topic, again, results);
  }

  // --- looking ---------------------------------------------------------------

  /** The names of all topics. */
  async topics() {
    const names = [];
    let cursor = '0';
    do {
      const [next, some] = await this.#server.repeat(() => this.#server.command(
        'SSCAN', `${this.#server.prefix}:topics`, cursor, 'COUNT', 1000));
      names.push(...some);
      cursor = String(next);
    } while (cursor !== '0');
    return [...new Set(names.map(String))].sort();
  }

  /** Counts of a topic; null: there is none. */
  async counts(topic) {
    checkTopic(topic);
    const flat = await this.#server.repeat(() => this.#server.script('stats',
      this.#server.keys(topic, 'wait meta dead relay due lease'), [1000]));
    const counts = {};
    for (let i = 0; i + 1 < flat.length; i += 2) {
      counts[flat[i]] = typeof flat[i + 1] === 'number' ? flat[i + 1]
        : String(flat[i + 1]);
    }
    return counts.kind ? counts : null;
  }

  /** A job; null: there is none. */
  look(topic, id) {
    return this.#find(topic, id, 'show');
  }

  /** Deletes a job. Returns it as it was; null: there was none. */
  delete(topic, id) {
    return this.#find(topic, id, 'delete');
  }

  async #find(topic, id, verb) {
    checkTopic(topic);
    let found;
    do {
      found = await this.#server.repeat(() => this.#findOnce(topic, id, verb));
    } while (found?.state === 'moved');
    return found;
  }

  async #findOnce(topic, id, verb) {
    const server = this.#server;
    const isMade = /^~[-\w]{12}[0-9a-f]{2}$/.test(id);
    const index = await server.command('HGET', server.key(topic, 'ids'), id);
    if (index === null && !isMade) return null;
    const place = index ? String(index) : id.slice(1, 13);
    const [bytes, died] = await Promise.all(place !== 'D'
      ? [server.command('GET', server.key(topic, `p:${place}`))]
      : [server.command('HGET', server.key(topic, 'rec'), id),
        server.command('ZSCORE', server.key(topic, 'dead'), id)]);
    const [told, dueMs, crashes, slot] = await server.script('slot',
      server.keys(topic,
        `wait run ids meta p:${place} dead rec idle due absent`),
      [verb, id, place, index ? '' : Number.parseInt(id.slice(13), 16)]);
    const state = String(told);
    if (state === 'none') return null;
    const raw = place === 'D' ? bytes
      : bytes && readPack(bytes)?.record?.(slot);
    const { options = [], body, ...counters } = (raw && readRecord(raw)) || {};
    return { id, topic, state, ...counters,
      dueMs: state !== 'dead' && dueMs >= 0 ? dueMs : undefined,
      diedMs: died ? Number(died) : undefined,
      crashes: (counters.crashes ?? 0) + (crashes ?? 0),
      options: Object.fromEntries([...options].map(([name, value]) =>
        [name, decode(value)])),
      body: body && decode(body) };
  }

  /** Calls that wait for an answer are rejected. */
  close() {
    this.#server.close();
  }
}

function otherKind(topic, kind) {
  return new WeirError(`the topic ${topic} is of the kind ${kind}`, 'EKIND');
}

function callsOf(packs) {
  const calls = [];
  let room = { jobs: 0, packs: 0, bytes: 0 };
  for (const pack of packs) {
    if (room.packs < 1 || room.jobs < pack.jobs.length ||
        room.bytes < pack.size) {
      calls.push([]);
      room = { ...CALL };
    }
    calls.at(-1).push(pack);
    room.packs--;
    room.jobs -= pack.jobs.length;
    room.bytes -= pack.size;
  }
  return calls;
}

/** Notes what became of jobs; returns the packs that need another name. */
function readAnswer(packs, answer, results) {
  const again = new Set();
  for (const { name, jobs } of packs) {
    jobs.forEach(({ index, id }, slot) => {
      results[index] = { id: id || madeId(name, slot), outcome: 'added' };
    });
  }
  for (let i = 1; i + 1 < answer.length; i += 2) {
    const pack = packs[answer[i]];
    const slot = answer[i + 1];
    if (slot === -3) throw new WeirError('a pack was refused', 'EINVAL');
    if (slot < 0) again.add(pack);
    else results[pack.jobs[slot % 256].index].outcome =
      slot < 256 ? 'exists' : 'full';
  }
  return [...again];
}
