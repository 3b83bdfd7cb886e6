// SPDX-License-Identifier: MIT
// One topic of a worker: claims, runs, renews, settles.

import { setTimeout as sleep } from 'node:timers/promises';
import { Job, Timeout, settleCall, verdictOf, verdictOfError } from './job.js';
import { isPassing } from './server.js';
import { EMPTY_RECORD, isId, madeId, optionOf, readNode, readPack, readRecord,
  topicOptions } from './wire.js';

const FETCH_BYTES = 4 * 1024 * 1024;
const CALL_JOBS = 1024;
const UNSETTLED_MAX = 4 * CALL_JOBS;
const AGAIN_MS = 500; // after a refusal

export class Lane {
  constructor(worker, topic, { handle, concurrency = 256 }) {
    Object.assign(this, { worker, topic, handle, concurrency });
    this.server = worker.server;
    this.options = topicOptions({});
    this.revision = -1;
    this.claims = new Map(); // by token: { token, deadline, left }
    this.running = new Set(); // jobs, in the order of their start
    this.suspects = [];
    this.verdicts = []; // that are in no call
    this.unsettled = 0; // these, and those in the call under way
    this.claimAt = 0;
    this.isAsleep = false;
    this.lastToken = 0;
    this.connection = -1; // of the last claim
    this.packBytes = 32 * 1024;
    this.isFull = false; // the server is
  }

  start() {
    this.claiming = this.#claimAll();
  }

  /** It should claim now. */
  wake() {
    this.isWoken = true;
    this.claimAt = 0;
    this.ring?.();
  }

  /** Resolves after so many ms, or when something changed. */
  #change(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Logs what is not as before. */
  complain(text) {
    if (this.said !== text && !this.server.isClosed) {
      this.worker.log(`${this.topic}: ${text}`);
    }
    this.said = text;
  }

  // --- claiming --------------------------------------------------------------

  get #room() {
    return Math.min(this.concurrency - this.running.size - this.suspects.length,
                    UNSETTLED_MAX - this.unsettled);
  }

  async #claimAll() {
    while (!this.worker.isStopping) {
      const waitMs = this.claimAt - performance.now();
      if (this.#room <= 0 || waitMs > 0) {
        await this.#change(this.#room > 0 ? waitMs : this.options.leaseMs);
        continue;
      }
      try {
        await this.#claim();
      } catch (error) {
        this.complain(`claim: ${error.message}`);
        this.isAsleep = false;
        this.claimAt = performance.now() + (isPassing(error) ? 50 : AGAIN_MS);
      }
    }
  }

  async #claim() {
    const { server, worker } = this;
    const runId = await server.met;
    if (this.revision < 0) await this.#readOptions(0);
    const { leaseMs, hasOnDead } = this.options;
    if (hasOnDead) return this.#leaveAlone('it has on_dead');
    const isFirst = server.connection !== this.connection && this.lastToken > 0;
    const { connection } = server;
    const room = this.#room;
    const nodes = Math.floor(FETCH_BYTES / this.packBytes);
    const sentAt = performance.now();
    this.isWoken = false;
    const answer = await server.script('claim', server.keys(this.topic,
      'wait run lease ids meta idle held due absent'),
      [room, leaseMs, Math.min(Math.max(nodes, 1), CALL_JOBS), worker.name,
        (this.isAsleep ? 1 : 0) + (this.claims.size > 0 ? 2 : 0), 'delay',
        isFirst ? `${runId} ${this.lastToken}` : runId]);
    const [timeUs, token, nextUs, jobs, state] = answer;
    if (timeUs === -1) return this.#leaveAlone(`it is of the kind ${token}`);
    this.said = undefined;
    this.connection = connection;
    this.lastToken = Math.max(this.lastToken, token);
    this.isAsleep = jobs === 0 || (jobs < room && nextUs !== 0);
    // Who was woken meanwhile claims again.
    this.claimAt = !this.isAsleep || this.isWoken ? 0 : sentAt
      + (nextUs < 0 ? leaseMs : Math.min(nextUs / 1000, leaseMs));
    const claim = { token, deadline: sentAt + leaseMs, left: jobs };
    if (jobs > 0) this.claims.set(token, claim);
    if (answer.length % 2 === 0) {
      this.complain(`${answer.at(-1)} that are none of weir's were set aside`);
    }
    const revision = Math.floor(state / 2);
    if (revision !== this.revision) await this.#readOptions(revision);
    if (jobs > 0) await this.#fetch(claim, answer, timeUs / 1000 - sentAt);
    return undefined;
  }

  #leaveAlone(why) {
    this.complain(`it is left alone: ${why}`);
    this.revision = -1;
    this.isAsleep = false;
    this.claimAt = performance.now() + this.options.leaseMs;
  }

  async #readOptions(revision) {
    const flat = await this.server.command('HGETALL',
      this.server.key(this.topic, 'options'));
    const stored = {};
    for (let i = 0; i < flat.length; i += 2) stored[flat[i]] = `${flat[i + 1]}`;
    this.options = topicOptions(stored);
    this.revision = revision;
    this.#renewLater();
  }

  /** Reads the packs of a claim and looks at its jobs. `offset`: the server's
   * clock less this one's. */
  async #fetch(claim, answer, offset) {
    const nodes = [];
    for (let i = 5; i + 1 < answer.length; i += 2) {
      nodes.push(readNode(answer[i], answer[i + 1]));
    }
    const names = [...new Set(nodes.map(({ name }) => name))];
    const packs = new Map();
    const keys = names.map((name) => this.server.key(this.topic, `p:${name}`));
    const all = await this.server.repeat(
      () => this.server.command('MGET', ...keys), this.options.leaseMs);
    names.forEach((name, i) =>
      packs.set(name, all[i] ? readPack(all[i]) : 'gone'));
    const bytes = all.reduce((sum, one) => sum + (one?.length ?? 0), 0);
    this.packBytes = Math.max(bytes / names.length + 1, this.packBytes * 3 / 4);
    const jobs = nodes.flatMap((node) =>
      this.#jobsOf(claim, node, packs.get(node.name)));
    if (nodes.some(({ isMixed }) => isMixed)) {
      jobs.sort((one, other) => one.dueMs - other.dueMs);
    }
    for (const job of jobs) this.#look(job, offset);
  }

  /** The jobs of a node that can be read; of the others it has the verdicts. */
  #jobsOf(claim, node, pack) {
    const jobs = [];
    for (let slot = node.lo; slot <= node.hi; slot++) {
      const place = { lane: this, claim, node, slot, pack };
      const made = madeId(node.name, slot);
      const id = pack?.ids?.[slot] ?? made;
      const record = slot < pack?.count ? readRecord(pack.record(slot)) : null;
      if (pack === 'newer' || record === 'newer') {
        this.complain('jobs of a later weir are left alone');
        this.#forget(claim, 1);
      } else if (record !== null && isId(id)) {
        jobs.push(new Job(place, id, record));
      } else {
        const job = new Job(place, made, EMPTY_RECORD);
        if (pack !== 'gone') this.complain(`${made} cannot be read`);
        this.#settle(pack === 'gone' ? { job, kind: 'done' }
          : verdictOf(job, 'dead', {}, { reason: 'malformed' }));
      }
    }
    return jobs;
  }

  /** So many jobs of a claim are not in hand any more. */
  #forget(claim, count) {
    claim.left -= count;
    if (claim.left === 0) this.claims.delete(claim.token);
  }

  // --- running ---------------------------------------------------------------

  #look(job, offset) {
    const { ttlMs, maxCrashes } = this.options;
    const ttl = optionOf(job.record, 'ttl_ms') || ttlMs;
    if (this.worker.isStopping) {
      this.#settle({ job, kind: 'back' });
    } else if (ttl > 0 && performance.now() + offset - job.dueMs > ttl) {
      this.#settle({ job, kind: 'expired' });
    } else if (job.place.node.ended === 0) {
      this.#run(job);
    } else if (job.crashes - 1 >= maxCrashes) {
      this.#settle(verdictOf(job, 'dead', {}, { reason: 'crashed' }));
    } else {
      this.suspects.push(job);
      this.worker.runSuspects();
    }
  }

  /** Notes that the next suspect starts, and runs it. False: there is none. */
  async runSuspect() {
    const job = this.suspects[0];
    if (!job) return false;
    const { claim, node } = job.place;
    const [isOurs] = [await this.server.script('start', this.server.keys(
      this.topic, 'run started'), [node.text, claim.token, this.worker.name])]
      .flat();
    if (this.suspects[0] !== job) return true; // lost, or given back
    this.suspects.shift();
    if (isOurs) {
      await new Promise((resolve) => {
        job.resolve = resolve;
        this.#run(job);
      });
    } else {
      this.#forget(claim, 1);
    }
    return true;
  }

  #run(job) {
    const now = performance.now();
    if (now > job.place.claim.deadline) {
      this.#settle({ job, kind: 'back' }); // refused where it is lost
      job.resolve?.();
      return;
    }
    job.timeoutAt = now + this.options.timeoutMs;
    this.running.add(job);
    this.#watch();
    try {
      const result = this.handle(job);
      if (typeof result?.then !== 'function') {
        this.#end(job, result);
      } else {
        result.then((value) => this.#end(job, value),
                    (error) => this.#end(job, error ?? 'retry', true));
      }
    } catch (error) {
      this.#end(job, error ?? 'retry', true);
    }
  }

  /** A run returned or threw this: an error is one in either case. */
  #end(job, result, isThrown = false) {
    if (job.isOver) return;
    this.#leave(job);
    this.#settle(isThrown || result instanceof Error
      ? verdictOfError(job, result, this.options) : { job, kind: 'done' });
  }

  #leave(job) {
    job.isOver = true;
    this.running.delete(job);
    job.resolve?.();
    this.ring?.();
  }

  /** Ends the runs whose timeout is over. */
  #watch() {
    const [first] = this.running;
    if (this.timer || !first) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      for (const job of this.running) {
        if (job.timeoutAt > performance.now()) break;
        const timeout = new Timeout('timeout');
        this.#end(job, timeout);
        job.cancel(timeout);
      }
      this.#watch();
    }, Math.max(first.timeoutAt - performance.now(), 1));
  }

  // --- leases ----------------------------------------------------------------

  #renewLater() {
    clearTimeout(this.renewal);
    if (!this.isOver) {
      this.renewal = setTimeout(() => this.#renew(), this.options.leaseMs / 3);
    }
  }

  async #renew() {
    const { leaseMs } = this.options;
    const claims = [...this.claims.values()];
    const sentAt = performance.now();
    this.#renewLater();
    if (claims.length === 0) return;
    try {
      const lost = await this.server.script('renew',
        this.server.keys(this.topic, 'lease'),
        [leaseMs, ...claims.map(({ token }) => token)]);
      for (const claim of claims) claim.deadline = sentAt + leaseMs;
      for (const token of lost) this.#lose(this.claims.get(Number(token)));
    } catch (error) {
      this.complain(`renew: ${error.message}`);
    }
  }

  #lose(claim) {
    if (!claim) return;
    this.claims.delete(claim.token);
    claim.isLost = true;
    this.complain(`the lease of ${claim.left} jobs is lost`);
    this.suspects = this.suspects.filter((job) => job.place.claim !== claim);
    for (const job of this.running) {
      if (job.place.claim !== claim) continue;
      this.#leave(job);
      job.cancel(new Error('the lease is lost'));
    }
  }

  // --- settling --------------------------------------------------------------

  #settle(verdict) {
    if (verdict.job.place.claim.isLost) return;
    this.verdicts.push(verdict);
    this.unsettled++;
    this.settling ??= new Promise((resolve) => {
      setImmediate(() => resolve(this.#settleAll()));
    });
  }

  async #settleAll() {
    while (this.verdicts.length > 0 && !this.server.isClosed) {
      const verdicts = this.#nextVerdicts();
      try {
        await this.server.repeat(() => this.#send(verdicts), Infinity);
        this.unsettled -= verdicts.length;
        this.ring?.();
      } catch (error) {
        this.verdicts.unshift(...verdicts);
        this.isFull = true;
        this.complain(`settle: ${error.message}`);
        await sleep(AGAIN_MS);
      }
    }
    this.settling = undefined;
  }

  /** Those of the next call. A full server takes those that are done. */
  #nextVerdicts() {
    const { verdicts } = this;
    const done = this.isFull ? verdicts.filter(({ record }) => !record) : [];
    this.isFull = false;
    if (done.length === 0) return verdicts.splice(0, CALL_JOBS);
    const now = new Set(done.slice(0, CALL_JOBS));
    this.verdicts = verdicts.filter((verdict) => !now.has(verdict));
    return [...now];
  }

  async #send(verdicts) {
    const { counts, keys, args } = settleCall(this.server, this.topic, verdicts,
                                              this.options.maxDead);
    await this.server.script('settle', keys, args);
    for (const [claim, count] of counts) this.#forget(claim, count);
  }

  // --- stopping --------------------------------------------------------------

  /** Waits until what runs is over, or `late` resolves: then that is given
   * back. */
  async drain(late) {
    let isLate = false;
    late.then(() => {
      isLate = true;
      this.ring?.();
    });
    this.wake();
    await Promise.race([this.claiming, late]);
    for (const job of this.suspects.splice(0)) {
      this.#settle({ job, kind: 'back' });
    }
    while (this.running.size > 0 && !isLate) await this.#change(1000);
    for (const job of this.running) {
      this.#settle({ job, kind: 'back' });
      this.#leave(job);
      job.cancel(new Error('the worker stops'));
    }
    await this.settling;
    this.isOver = true;
    clearTimeout(this.timer);
    clearTimeout(this.renewal);
    await this.server.repeat(() => this.server.command('ZREM',
      this.server.key(this.topic, 'idle'), this.worker.name), AGAIN_MS);
  }
}
