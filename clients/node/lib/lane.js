// SPDX-License-Identifier: MIT
// One topic of a worker: pulls jobs, runs them, renews leases, finishes jobs.

import { Job, isFault, verdictOf } from './job.js';
import { Notes } from './keeper.js';
import { changesOf } from './server.js';

const KEYS = 'wait run lease ids meta idle held due dead rec options started '
  + 'absent';
const CALL_JOBS = 1024;
const AGAIN_MS = 500; // after a call that failed
const LATER = 2; // of finish.lua: nothing was done with this job

export class Lane {
  inHand = new Set(); // jobs, until they are finished
  running = new Set(); // those whose handler runs, from the oldest on
  verdicts = []; // not answered yet: { job, args }
  suspect; // a job in hand that is one
  mayBring = false; // a suspect, by the pull that is out
  out = new Set(); // names of calls that the server has not answered
  pullAt = 0;
  finishAt = 0;
  renewedAt = 0;
  leaseMs = 0;
  notes = new Notes(); // for the keeper

  constructor(worker, topic, { handle, concurrency = 256 }) {
    Object.assign(this, { worker, topic, handle, concurrency });
    this.server = worker.server;
    this.keys = this.server.keys(topic, KEYS);
    this.complain = changesOf((text) => this.server.log(`${topic}: ${text}`));
  }

  /** Half of the jobs come while the others run. */
  get #room() {
    return Math.min(this.concurrency - this.running.size, CALL_JOBS,
                    Math.ceil(this.concurrency / 2),
                    4 * CALL_JOBS - this.verdicts.length);
  }

  /** When to do what; no call is out twice. */
  get #dues() {
    const mayPull = this.#room > 0 && !this.worker.isStopping;
    const [oldest] = this.running;
    const dues = { finish: this.verdicts.length ? this.finishAt : Infinity,
      renew: this.inHand.size ? this.renewedAt + this.leaseMs / 3 : Infinity,
      pull: mayPull ? this.pullAt : Infinity,
      endLate: oldest?.timeoutAt ?? Infinity };
    for (const name of this.out) dues[name] = Infinity;
    return dues;
  }

  /** ms until something is to be done. */
  get waitMs() {
    return Math.min(...Object.values(this.#dues)) - performance.now();
  }

  /** Does what is due. */
  act() {
    const now = performance.now();
    for (const [name, at] of Object.entries(this.#dues)) {
      if (at <= now) this.#call(name, now);
    }
  }

  /** Of those below by their names, which are not for others. */
  async #call(name, now) {
    this.out.add(name);
    const jobs = await this[name](now).catch(({ message }) => {
      if (!this.server.isClosed) this.complain(message);
    });
    const isNext = !this.mayBring || this.worker.lanes.length === 1;
    this.out.delete(name);
    if (jobs && isNext) this.act(); // more come while these run
    jobs?.forEach((job) => this.#run(job));
    this.worker.ring();
  }

  async endLate(now) {
    for (const job of this.running) {
      if (job.timeoutAt > now) break;
      this.#end(job, ['timeout', '', 'timeout'], 'timeout');
    }
  }

  async pull(now) {
    const { inHand } = this.worker;
    this.mayBring = inHand < 2;
    this.pullAt = now + AGAIN_MS; // a wake-up makes it 0
    const [timeUs, token, nextUs, , , leaseMs, timeoutMs, isSuspect, jobs] =
      await this.server.script('delay/pull', this.keys, this.#room,
                               this.worker.name, inHand, '');
    if (timeUs === -1) throw new Error(`it is of the kind ${token}`);
    this.complain('');
    if (leaseMs !== this.leaseMs) this.renewedAt = -Infinity; // older claims
    Object.assign(this, { leaseMs, timeoutMs, startUntil: now + leaseMs });
    const restMs = nextUs < 0 ? leaseMs : Math.min(nextUs / 1000, leaseMs);
    if (this.pullAt > 0) this.pullAt = now + restMs;
    const some = jobs.map((told) => new Job(this.topic, token, told));
    if (some.length > 0) this.notes.add(token, leaseMs, timeoutMs);
    some.forEach((job) => this.inHand.add(job) && this.running.add(job));
    if (isSuspect) [this.suspect] = some;
    return some;
  }

  async #run(job) {
    const isLate = performance.now() > this.startUntil;
    if (isLate || this.worker.isStopping) this.#end(job, ['back']);
    if (!this.running.has(job)) return;
    let words = ['malformed'];
    job.timeoutAt = performance.now() + this.timeoutMs;
    try {
      job.decode();
      words = ['done'];
      const result = await this.handle(job);
      if (result instanceof Error) words = this.#fault(job, result);
      if (/Generator/.test(Object.prototype.toString.call(result))) {
        throw new TypeError('the handler returned a generator, which nothing '
          + 'runs');
      }
    } catch (error) {
      if (words[0] === 'done') words = this.#fault(job, error);
    }
    this.#end(job, words);
  }

  /** The verdict of a run that threw, or returned, an error. A fault is logged
   * with its stack. */
  #fault(job, error) {
    const words = verdictOf(error);
    if (isFault(error) && this.running.has(job)) {
      const stack = words[2] === 'its text or delay is none' ? words[2]
        : error?.stack ?? words[2];
      this.server.log(`${this.topic}: job ${job.id}, attempt ${job.attempt}: ${
        stack}`);
    }
    return words;
  }

  /** A run is over, for a reason where its handler is not. */
  #end(job, [verdict, delayMs = '', why = ''], reason) {
    if (!this.running.delete(job)) return;
    this.verdicts.push({ job, args: [job.handle, verdict, delayMs, why] });
    if (reason) job.abort(reason);
    this.worker.ring();
  }

  async finish(now) {
    this.finishAt = now + AGAIN_MS;
    const some = this.verdicts.slice(0, CALL_JOBS);
    const results = await this.server.script('delay/finish', this.keys,
      this.worker.name, ...some.flatMap(({ args }) => args));
    this.verdicts.splice(0, some.length);
    some.forEach((verdict, i) => {
      if (results[i] === LATER) this.verdicts.push(verdict);
      else this.inHand.delete(verdict.job);
    });
    if (!results.includes(LATER)) this.finishAt = 0;
    if (this.inHand.size === 0) this.notes.clear();
    if (this.suspect && !this.inHand.has(this.suspect)) {
      this.suspect = undefined;
      this.worker.wake(); // for the next one
    }
  }

  async renew(now) {
    this.renewedAt = now;
    const tokens = new Set([...this.inHand].map(({ token }) => token));
    this.notes.renew(tokens, this.leaseMs);
    const lost = await this.server.script(
      'delay/renew', [this.keys[2], this.keys[6]], this.leaseMs, ...tokens);
    this.giveBack('the lease is lost', lost.map(Number));
  }

  /** Gives back what runs, or of that what has one of these tokens. */
  giveBack(reason, tokens) {
    for (const job of this.running) {
      if (tokens && !tokens.includes(job.token)) continue;
      this.complain(reason);
      this.#end(job, ['back'], reason);
    }
  }
}
