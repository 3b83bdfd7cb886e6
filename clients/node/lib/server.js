// SPDX-License-Identifier: MIT
// A connection to a server: commands and scripts, repeated until an answer
// comes.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';

const FOLDERS = [process.env.WEIR_SCRIPTS,
  fileURLToPath(new URL('../scripts', import.meta.url)),
  '/usr/share/weir/scripts'].filter(Boolean);
const REPEAT_MS = 60000; // the server forgets adds after two of these
const SILENT_MS = 10000; // then the connection is made anew
const OWN_OPTIONS = { maxRetriesPerRequest: 0, enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false, enableReadyCheck: false };
const PASSING = ['LOADING', 'BUSY', 'MASTERDOWN', 'READONLY', 'TRYAGAIN',
  'CLUSTERDOWN', 'NOREPLICAS'];
const scripts = new Map();

/** What was refused (EKIND, EINVAL), or nobody knows about (EUNKNOWN). */
export class WeirError extends Error {
  constructor(message, code) {
    super(message);
    this.name = 'WeirError';
    this.code = code;
  }
}

function scriptOf(name) {
  if (!scripts.has(name)) {
    const file = FOLDERS.flatMap((folder) => ['', 'delay', 'store'].map(
      (kind) => path.join(folder, kind, `${name}.lua`))).find(existsSync);
    if (!file) {
      throw new WeirError(`${name}.lua is in none of ${FOLDERS.join(', ')}`,
                          'ENOENT');
    }
    const text = readFileSync(file);
    const sha1 = createHash('sha1').update(text).digest('hex');
    scripts.set(name, { text, sha1 });
  }
  return scripts.get(name);
}

const wordOf = (error) => error.message.split(' ', 1)[0];

/** Whether the same may be sent again: nothing was done, or nobody knows. */
export function isPassing(error) {
  return error.code !== 'ECLOSED' && error.code !== 'ENOENT' &&
    (error.name !== 'ReplyError' || PASSING.includes(wordOf(error)));
}

/** A connection of ioredis: an address, or options. */
export function connect(address, own) {
  const options = { retryStrategy: (times) => Math.min(20 * times, 1000),
    disableClientInfo: true };
  return typeof address === 'string'
    ? new Redis(address.replace(/^unix:\/\//, ''), { ...options, ...own })
    : new Redis({ ...options, ...address, ...own });
}

export class Server {
  #unmet;

  constructor(address, { prefix = 'weir', log = console.error } = {}) {
    this.prefix = prefix;
    this.isClosed = false;
    this.connection = 0; // which one since the start
    this.#forget();
    this.redis = connect(address, { socketTimeout: SILENT_MS, ...OWN_OPTIONS });
    this.redis.on('error', ({ message }) => {
      if (this.said !== message) log(`redis: ${message}`);
      this.said = message;
    });
    this.redis.on('ready', () => this.#meet().catch(() => {}));
    this.redis.on('close', () => this.#forget());
  }

  #forget() {
    if (this.#unmet || this.isClosed) return;
    /** The first 16 digits of the server's run_id, when there is one. */
    this.met = new Promise((resolve, reject) => {
      this.#unmet = { resolve, reject };
    });
    this.met.catch(() => {});
  }

  async #meet() {
    this.connection++;
    const [info, time] = await Promise.all([this.command('INFO', 'server'),
      this.command('TIME')]);
    this.offset = Number(time[0]) * 1000 + Number(time[1]) / 1000
      - performance.now();
    this.said = undefined;
    this.#unmet?.resolve(/run_id:([0-9a-f]{16})/.exec(info)?.[1] ?? '');
    this.#unmet = undefined;
  }

  /** The server's clock, in ms since 1970. */
  now() {
    return performance.now() + this.offset;
  }

  key(topic, name) {
    return `${this.prefix}:{${topic}}:${name}`;
  }

  keys(topic, names) {
    return names.split(' ').map((name) => this.key(topic, name));
  }

  command(...args) {
    return this.redis.callBuffer(...args);
  }

  async script(name, keys, args) {
    const { sha1, text } = scriptOf(name);
    try {
      return await this.command('EVALSHA', sha1, keys.length, ...keys, ...args);
    } catch (error) {
      if (wordOf(error) !== 'NOSCRIPT') throw error;
      await this.command('SCRIPT', 'LOAD', text);
      return this.command('EVALSHA', sha1, keys.length, ...keys, ...args);
    }
  }

  /** Calls `send` until there is an answer; what it sends may arrive several
   * times. */
  async repeat(send, timeoutMs = REPEAT_MS) {
    const end = performance.now() + timeoutMs;
    for (let waitMs = 5; ; waitMs = Math.min(2 * waitMs, 500)) {
      try {
        while (this.#unmet && !this.isClosed && performance.now() < end) {
          await sleep(20);
        }
        if (this.isClosed) throw new WeirError('it is closed', 'ECLOSED');
        return await send();
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (performance.now() > end) {
          throw new WeirError(`no answer for ${timeoutMs / 1000} s: `
            + error.message, 'EUNKNOWN');
        }
      }
      await sleep(waitMs);
    }
  }

  close() {
    this.isClosed = true;
    this.#unmet?.reject(new WeirError('it is closed', 'ECLOSED'));
    this.redis.disconnect();
  }
}
