// SPDX-License-Identifier: MIT
import type { RedisOptions } from 'ioredis';

/** redis://, rediss:// or unix:///path, or options of ioredis. */
export type Address = string | RedisOptions;

export interface ServerOptions {
  /** In place of `weir` in the names of keys. */
  prefix?: string;
  /** Is told what the connection stumbles over; console.error by default. */
  log?: (line: string) => void;
}

export interface JobOptions {
  /** 1 to 128 visible ASCII characters without { and }, not beginning with ~
   * or !. Made where it is missing. */
  id?: string;
  delayMs?: number;
  /** ms since 1970, by the server's clock. */
  atMs?: number;
  /** A ladder, such as `15s 3m 10m`. */
  retry?: string;
  /** The job expires so long after it is due. */
  ttlMs?: number;
  url?: string;
  headers?: Record<string, string>;
}

export interface NewJob extends JobOptions {
  /** What msgpack can say; undefined is nil. */
  body?: unknown;
}

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
}

/** Code: EKIND, the topic is of another kind; EINVAL, the server refused it;
 * EUNKNOWN, no answer came, it may have been done; ECLOSED. Where a script is
 * missing the error is readFileSync's. */
export class WeirError extends Error {
  code: 'EKIND' | 'EINVAL' | 'EUNKNOWN' | 'ECLOSED';
}

/** Its methods wait for a server, a minute at most. RangeError: an argument
 * cannot be, nothing was sent. */
export class Client {
  constructor(address?: Address, options?: ServerOptions);
  add(topic: string, body: unknown, options?: JobOptions): Promise<Added>;
  /** Results in the order of the jobs. Where it rejects, a part of them may
   * have been added. */
  addMany(topic: string, jobs: NewJob[]): Promise<Added[]>;
  topics(): Promise<string[]>;
  /** By the names of docs/wire.md; null: there is no such topic. */
  counts(topic: string): Promise<Record<string, number | string> | null>;
  look(topic: string, id: string): Promise<FoundJob | null>;
  /** Returns the job as it was; null: there was none. */
  delete(topic: string, id: string): Promise<FoundJob | null>;
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
  readonly crashes: number;
  readonly dueMs: number;
  readonly addedMs: number;
  readonly body: any;
  /** The body's msgpack. */
  readonly raw: Buffer;
  readonly url?: string;
  readonly headers: Record<string, string>;
  /** Aborted when the verdict does not count any more. */
  readonly signal: AbortSignal;
}

/** Other errors that a handler throws, or returns, are retries, too. */
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
  /** Rejects when the last verdicts could not be told. */
  run(options?: { signals?: NodeJS.Signals[] }): Promise<void>;
  /** Called twice: what runs is given back. */
  stop(): void;
}
