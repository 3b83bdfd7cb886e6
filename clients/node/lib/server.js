// SPDX-License-Identifier: MIT
// A connection to a server: commands and scripts, until an answer comes.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { checked } from './wire.js';

const FOLDER = process.env.WEIR_SCRIPTS
  ?? fileURLToPath(new URL('../scripts', import.meta.url));
const REPEAT_MS = 60000; // the server forgets adds after two of these
const PAUSE_MS = 50;
const OURS = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false,
  enableReadyCheck: false, socketTimeout: 10000 };
const USUAL = { retryStrategy: (times) => Math.min(20 * times, 1000),
  disableClientInfo: true };
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

export class Server {
  isClosed = false;
  repeats = 0; // commands that were sent again

  constructor(address = 'redis://127.0.0.1', options = {}) {
    const { prefix = 'weir', log = console.error, repeatMs = REPEAT_MS } =
      options;
    Object.assign(this, { prefix, log, repeatMs });
    this.redis = new Redis(OURS, typeof address === 'string'
      ? address.replace(/^unix:\/\//, '') : address, USUAL);
    const say = changesOf(log);
    this.redis.on('error', ({ message }) => say(`redis: ${message}`));
    this.redis.on('ready', () => say(''));
  }

  keys(topic, names) {
    checked('topic', topic);
    return names.split(' ').map((name) => `${this.prefix}:{${topic}}:${name}`);
  }

  /** It may arrive several times. */
  async command(...args) {
    const end = performance.now() + this.repeatMs;
    for (;; await sleep(PAUSE_MS), this.repeats++) {
      try {
        return await this.redis.callBuffer(...args);
      } catch ({ name, message }) {
        if (this.isClosed) throw new WeirError('it is closed', 'ECLOSED');
        const isFinal = name === 'ReplyError' && !PASSING.test(message);
        if (isFinal) throw new WeirError(message, 'EINVAL');
        if (performance.now() > end) throw new WeirError(message, 'EUNKNOWN');
      }
    }
  }

  async script(name, keys, ...args) {
    const { sha1, text } = scripts[name] ??= readScript(name);
    const call = ['EVALSHA', sha1, keys.length, ...keys, ...args];
    try {
      return await this.command(...call);
    } catch (error) {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      await this.command('SCRIPT', 'LOAD', text);
      return this.command(...call);
    }
  }

  close() {
    this.isClosed = true;
    this.redis.disconnect();
  }
}
