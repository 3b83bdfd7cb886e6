// SPDX-License-Identifier: MIT
// A connection to a server: commands and scripts, until an answer comes.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { prefixOf, shown, topicOf } from './check.js';

const FOLDER = process.env.WEIR_SCRIPTS
  ?? fileURLToPath(new URL('../scripts', import.meta.url));
const REPEAT_MS = 60000; // the server forgets adds after two of these
const FIRST_MS = 3000; // for a server that never answered; sentinels: 10000
const ANSWER_MS = 10000; // until a connection counts as lost
const PAUSE_MS = 50;
const LARGE = 1024 ** 2; // bytes: no server can be told to take less at once
const CLOSINGS = 3; // of a connection at a large command, then it is given up
const OURS = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false,
  enableReadyCheck: false, socketTimeout: ANSWER_MS };
const USUAL = { connectTimeout: FIRST_MS, disableClientInfo: true,
  retryStrategy: (times) => Math.min(20 * times, 1000) };
const PASSING = /^(LOADING|BUSY|MASTERDOWN|READONLY|NOREPLICAS) /;
const scripts = {};

export class WeirError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

function readScript(name) {
  const text = readFileSync(`${FOLDER}/${name}.lua`);
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

/** A log of what is not as before; '': all is well again. */
export function changesOf(log) {
  let said = '';
  return (text) => {
    if (text !== said && text !== '') log(text);
    said = text;
  };
}

/** Throws if a command may be more than the server takes, which closes the
 * connection then. */
function refuseLarge(address, args) {
  const size = args.reduce((sum, arg) => sum + Buffer.byteLength(
    Buffer.isBuffer(arg) ? arg : String(arg)), 0);
  if (size < LARGE) return;
  throw new WeirError(`the server at ${address} closes the connection at a `
    + `command of ${size} bytes: raise its proto-max-bulk-len and `
    + 'client-query-buffer-limit', 'EINVAL');
}

/** Options of ioredis, and the prefix that an address may have, as weir's. */
function optionsOfAddress(address) {
  if (typeof address === 'string') {
    const [, plain, query = ''] = /^([^?]*)(?:\?(.*))?$/s.exec(address);
    const { prefix, ...more } = Object.fromEntries(new URLSearchParams(query));
    if (!/^(redis|rediss|unix):\/\/|^\//.test(plain)) {
      throw new RangeError(`the address ${shown(address)} is not redis://, `
        + 'rediss:// or unix:///path');
    }
    for (const name of Object.keys(more)) {
      throw new RangeError(`the address has the option ${name}: prefix is the `
        + 'only one');
    }
    return { options: plain.replace(/^unix:\/\//, ''), prefix };
  }
  if (typeof address !== 'object' || address === null ||
      address instanceof Redis) {
    throw new RangeError('the address is neither a text nor options of '
      + 'ioredis: give redis://HOST');
  }
  if (address.keyPrefix) {
    throw new RangeError("keyPrefix renames weir's keys: give prefix");
  }
  return { options: address };
}

export class Server {
  isClosed = false;
  hasMet = false; // the server answered once
  repeats = 0; // commands that were sent again
  readies = 0; // connections that took commands
  trouble = ''; // of the connection
  origin = this; // of those that within() returns

  constructor(address = 'redis://127.0.0.1', { prefix, log = console.error,
    timeoutMs, repeatMs = REPEAT_MS } = {}) {
    const from = optionsOfAddress(address);
    if (prefix !== undefined && from.prefix !== undefined &&
        prefix !== from.prefix) {
      throw new RangeError(`the address has prefix=${from.prefix}, and the `
        + `option prefix is ${prefix}: give one of them`);
    }
    Object.assign(this, { log, timeoutMs, repeatMs,
      prefix: prefixOf('prefix', prefix ?? from.prefix ?? 'weir') });
    this.redis = new Redis(OURS, from.options, USUAL);
    const say = changesOf(log);
    this.redis.on('error', ({ message }) => {
      this.trouble = message;
      say(`redis: ${message}`);
    });
    this.redis.on('ready', () => {
      this.trouble = '';
      this.readies++;
      say('');
    });
  }

  get address() {
    const { path, host, port, name, sentinels } = this.redis.options;
    if (sentinels) return `sentinels, of ${name}`;
    return path ? `unix://${path}` : `${host}:${port}`;
  }

  keys(topic, names) {
    topicOf(topic);
    return names.split(' ').map((name) => `${this.prefix}:{${topic}}:${name}`);
  }

  /** The same server, for calls that wait for so many ms. */
  within(timeoutMs) {
    if (timeoutMs === undefined) return this;
    const end = performance.now() + timeoutMs;
    return Object.create(this, { callEnd: { value: end } });
  }

  /** When a call that began then is given up. */
  endOf(began) {
    if (this.callEnd !== undefined) return this.callEnd;
    if (this.timeoutMs !== undefined) return began + this.timeoutMs;
    if (this.origin.hasMet) return began + this.repeatMs;
    return began + (this.redis.options.sentinels ? 10000 : FIRST_MS);
  }

  /** One try. An answer that comes after the end is not heard. */
  async send(args, end) {
    if (end - performance.now() >= ANSWER_MS) {
      return this.redis.callBuffer(...args);
    }
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('it did not answer in time')),
                         Math.max(end - performance.now(), 0));
    });
    try {
      return await Promise.race([this.redis.callBuffer(...args), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** It may arrive several times. */
  async command(...args) {
    const began = performance.now();
    const { origin } = this;
    let closings = 0;
    for (;; await sleep(PAUSE_MS), origin.repeats++) {
      const readies = origin.readies - (this.redis.status === 'ready');
      try {
        const answer = await this.send(args, this.endOf(began));
        origin.hasMet = true;
        return answer;
      } catch ({ name, message }) {
        if (origin.isClosed) throw new WeirError('it is closed', 'ECLOSED');
        const isAnswer = name === 'ReplyError';
        if (isAnswer) origin.hasMet = true;
        if (isAnswer && !PASSING.test(message)) {
          throw new WeirError(message, 'EINVAL');
        }
        const isSent = origin.readies > readies;
        closings += isSent && name === 'MaxRetriesPerRequestError';
        if (closings >= CLOSINGS) refuseLarge(this.address, args);
        if (performance.now() + PAUSE_MS > this.endOf(began)) {
          throw new WeirError(`no answer from the server at ${this.address}: ${
            origin.trouble || message}`, origin.hasMet ? 'EUNKNOWN' : 'ECONN');
        }
      }
    }
  }

  async script(name, keys, ...args) {
    const { sha1, text } = scripts[name] ??= readScript(name);
    const call = ['EVALSHA', sha1, keys.length, ...keys, ...args];
    for (let loads = 0;; loads++) {
      try {
        return await this.command(...call);
      } catch (error) {
        if (!error.message.startsWith('NOSCRIPT')) throw error;
        if (loads === 3) {
          throw new WeirError(`the server at ${this.address} forgets scripts `
            + 'as soon as they are loaded', 'EINVAL');
        }
        await this.command('SCRIPT', 'LOAD', text);
      }
    }
  }

  close() {
    this.isClosed = true;
    this.redis.disconnect();
  }
}
