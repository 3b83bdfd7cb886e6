// SPDX-License-Identifier: MIT
import type { RedisOptions } from 'ioredis';

/** redis://, rediss:// or unix:///path, of these with ?prefix=NAME, too, or
 * options of ioredis. */
export type Address = string | RedisOptions;

export interface ServerOptions {
  /** In place of `weir` in the names of keys, 1 to 32 of A-Z a-z 0-9 . _ : - */
  prefix?: string;
  /** Is told what the connection stumbles over; console.error by default. */
  log?: (line: string) => void;
}

export interface ClientOptions extends ServerOptions, CallOptions {}

export interface CallOptions {
  /** How long a call waits for the server: 60000, and 3000 until the server
   * answered once (behind sentinels 10000). */
  timeoutMs?: number;
}

export interface JobOptions {
  /** 1 to 128 visible ASCII characters without { and }, not beginning with @
   * or !. Made where it is missing. */
  id?: string;
  /** From now on, 0 to 3,650 days. */
  delayMs?: number;
  /** In place of delayMs: ms since 1970, by the server's clock. */
  atMs?: number;
  /** A ladder, such as `15s 3m 10m`. */
  retry?: string;
  /** The job expires so long after it is due. */
  ttlMs?: number;
  /** At most 2,048 bytes. */
  url?: string;
  /** At most 16, of 256 bytes each; visible ASCII. */
  headers?: Record<string, string>;
}

/** The job is pushed, as one with an id: if the answer is lost and the job ran
 * by then, it may be added twice. */
export interface AddOptions extends JobOptions, CallOptions {
  /** Whose it is, 1 to 2,048 bytes. */
  key?: string;
  priority?: 'urgent' | 'high' | 'normal' | 'low';
  /** A key that one job at a time may have, 1 to 2,048 bytes. */
  unique?: string;
  /** `10m`, `until-done` or `until-start`. */
  uniqueFor?: string;
  uniqueElse?: 'reject' | 'replace' | 'debounce' | 'throttle';
  /** `1h`: of debounce. */
  maxWait?: string;
}

export interface NewJob extends JobOptions {
  /** null if it is left out. */
  body?: Body;
}

/** What arrives as it was given. Integers beyond 2^53 are BigInts, up to 64
 * bits. 32 levels deep at most, and 1 MiB as msgpack, or max_body of the
 * topic. */
export type Body = null | boolean | number | bigint | string | Uint8Array |
  Body[] | { [name: string]: Body };

export interface Added {
  /** Where it is held: of the job that has its unique key. */
  id: string;
  outcome: 'added' | 'exists' | 'held' | 'full';
}

export interface FoundJob {
  id: string;
  topic: string;
  state: 'scheduled' | 'ready' | 'running' | 'dead';
  /** undefined while it runs, and of a dead job. */
  dueMs?: number;
  diedMs?: number;
  attempt?: number;
  failures?: number;
  timeouts?: number;
  crashes: number;
  snoozes?: number;
  /** retry, ttl_ms, url, headers, and of what ran error and reason. */
  options: Record<string, unknown>;
  body?: unknown;
  /** Why the body cannot be read; then it is undefined. */
  malformed?: string;
}

/** Code: EKIND, the topic is of another kind; EINVAL, the server refused it;
 * ECONN, the server never answered; EUNKNOWN, no answer came, it may have been
 * done; ECLOSED. If a script is missing the error is readFileSync's. */
export class WeirError extends Error {
  code: 'EKIND' | 'EINVAL' | 'ECONN' | 'EUNKNOWN' | 'ECLOSED';
}

/** RangeError: an argument cannot be, nothing was sent. A name that is no
 * option is such an error. */
export class Client {
  constructor(address?: Address, options?: ClientOptions);
  add(topic: string, body: Body, options?: AddOptions): Promise<Added>;
  /** Results in the order of the jobs. If it rejects, a part of them may have
   * been added, unless it is a RangeError. */
  addMany(topic: string, jobs: NewJob[], options?: CallOptions):
    Promise<Added[]>;
  topics(options?: CallOptions): Promise<string[]>;
  /** By the names of docs/wire.md; null: there is no such topic. */
  counts(topic: string, options?: CallOptions):
    Promise<Record<string, number | string> | null>;
  look(topic: string, id: string, options?: CallOptions):
    Promise<FoundJob | null>;
  /** Returns the job as it was; null: there was none. */
  delete(topic: string, id: string, options?: CallOptions):
    Promise<FoundJob | null>;
  /** Calls that wait for an answer are rejected. */
  close(): void;
}

export class Job {
  readonly id: string;
  readonly topic: string;
  /** Grows with each run of the job. */
  readonly token: number;
  /** From 1. */
  readonly attempt: number;
  /** Attempts that failed, and of these those beyond the timeout. */
  readonly failures: number;
  readonly timeouts: number;
  readonly crashes: number;
  readonly snoozes: number;
  readonly dueMs: number;
  readonly addedMs: number;
  /** Integers beyond 2^53 are BigInts. */
  readonly body: any;
  /** The body's msgpack. */
  readonly raw: Buffer;
  readonly url?: string;
  readonly headers: Record<string, string>;
  /** Aborted when the verdict does not count any more. */
  readonly signal: AbortSignal;
}

/** Other errors that a handler throws, or returns, are retries, too: they are
 * logged with their stack, and the reason of the job names their place. */
export class Retry extends Error {
  /** Without delayMs: after the delay of the job's ladder. */
  constructor(message?: string, options?: { delayMs?: number });
}
export class Snooze extends Error {
  constructor(delayMs: number);
}
export class Fail extends Error {
  constructor(message?: string);
}

export type Handler = (job: Job) => unknown;

export class Worker {
  constructor(address: Address,
              topics: Record<string, Handler | { handle: Handler;
                /** Runs at once; 256. */
                concurrency?: number; }>,
              options?: ServerOptions & {
                /** How long a stop waits for runs; 30000. */
                drainMs?: number; });
  /** Rejects if no server answers within 3 s, or does not take the last
   * verdicts. */
  run(options?: { signals?: NodeJS.Signals[] }): Promise<void>;
  /** Called twice: what runs is given back. */
  stop(): void;
}
