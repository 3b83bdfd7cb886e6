// SPDX-License-Identifier: MIT
// One topic of a worker: pulls jobs, runs them, renews leases, finishes jobs.

import { Job, verdictOf } from './job.js';
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
  mayBring = false; // a suspect, by a pull that is out
  pullAt = 0;
  finishAt = 0;
  renewedAt = 0;
  leaseMs = 0;

  constructor(worker, topic, { handle, concurrency = 256 }) {
    Object.assign(this, { worker, topic, handle, concurrency });
    this.server = worker.server;
    this.keys = this.server.keys(topic, KEYS);
    this.complain = changesOf((text) => this.server.log(`${topic}: ${text}`));
  }

  get #room() {
    return Math.min(this.concurrency - this.running.size, CALL_JOBS,
                    4 * CALL_JOBS - this.verdicts.length);
  }

  /** When to finish, to renew, to pull, and when a run takes too long. */
  get #dues() {
    const mayPull = this.#room > 0 && !this.worker.isStopping;
    const [oldest] = this.running;
    return [this.verdicts.length > 0 ? this.finishAt : Infinity,
      this.inHand.size > 0 ? this.renewedAt + this.leaseMs / 3 : Infinity,
      mayPull ? this.pullAt : Infinity, oldest?.timeoutAt ?? Infinity];
  }

  /** ms until something is to be done. */
  get waitMs() {
    return Math.min(...this.#dues) - performance.now();
  }

  /** Does what is due. */
  async act() {
    const now = performance.now();
    const [finishes, renews, pulls] = this.#dues.map((due) => due <= now);
    for (const job of this.running) {
      if (job.timeoutAt > now) break;
      this.#end(job, ['timeout', '', 'timeout'], 'timeout');
    }
    // The jobs of a pull run while the server finishes those before.
    const calls = await Promise.allSettled([renews && this.#renew(now),
      pulls && this.#pull(now), finishes && this.#finish(now)]);
    this.mayBring = false;
    const { reason } = calls.find(({ status }) => status === 'rejected') ?? {};
    if (reason && !this.server.isClosed) this.complain(reason.message);
  }

  async #pull(now) {
    const { inHand } = this.worker;
    this.mayBring = inHand < 2;
    this.pullAt = now + AGAIN_MS; // a wake-up makes it 0
    const [timeUs, token, nextUs, , , leaseMs, timeoutMs, isSuspect, jobs] =
      await this.server.script('delay/pull', this.keys, this.#room,
                               this.worker.name, inHand, '');
    if (timeUs === -1) throw new Error(`it is of the kind ${token}`);
    this.complain('');
    this.leaseMs = leaseMs;
    const restMs = nextUs < 0 ? leaseMs : Math.min(nextUs / 1000, leaseMs);
    if (this.pullAt > 0) this.pullAt = now + restMs;
    for (const told of jobs) {
      const job = new Job(this.topic, token, told);
      this.inHand.add(job);
      this.running.add(job);
      if (isSuspect) this.suspect = job;
      if (this.worker.isStopping || performance.now() > now + leaseMs) {
        this.#end(job, ['back']);
      } else {
        this.#run(job, timeoutMs);
      }
    }
  }

  async #run(job, timeoutMs) {
    let words = ['malformed'];
    job.timeoutAt = performance.now() + timeoutMs;
    try {
      job.decode();
      words = ['done'];
      const result = await this.handle(job);
      if (result instanceof Error) words = verdictOf(result);
    } catch (error) {
      if (words[0] === 'done') words = verdictOf(error);
    }
    this.#end(job, words);
  }

  /** A run is over, for a reason where its handler is not. */
  #end(job, [verdict, delayMs = '', why = ''], reason) {
    if (!this.running.delete(job)) return;
    this.verdicts.push({ job, args: [job.handle, verdict, delayMs, why] });
    if (reason) job.abort(reason);
    this.worker.ring();
  }

  async #finish(now) {
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
    if (this.suspect && !this.inHand.has(this.suspect)) {
      this.suspect = undefined;
      this.worker.wake(); // for the next one
    }
  }

  async #renew(now) {
    this.renewedAt = now;
    const tokens = new Set([...this.inHand].map(({ token }) => token));
    const lost = await this.server.script('delay/renew', [this.keys[2]],
                                          this.leaseMs, ...tokens);
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
