// SPDX-License-Identifier: MIT
// docs/wire-vectors.jsonl, with what the library writes and reads.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { decode, encode } from '../lib/msgpack.js';
import { newJob, recordIn, writePack } from '../lib/wire.js';
import { TestServer, until } from './server.js';

const { WEIR_DOCS, WEIR_SCRIPTS } = process.env;
const names = new Map();

/** msgpack whose strings, of one byte a character, are all of type str. */
function packed(value) {
  if (typeof value === 'number') return Buffer.from(encode(value));
  const size = Buffer.alloc(5);
  size.writeUInt32BE(value.length, 1);
  size[0] = Array.isArray(value) ? 0xdd : 0xdb;
  return Buffer.concat([size, ...Array.isArray(value) ? value.map(packed)
    : [Buffer.from(value, 'latin1')]]);
}

/** What a part of a call stands for: a string, a number or a Buffer. */
function valueOf(part) {
  if (part === null || typeof part !== 'object') return part;
  if (Array.isArray(part)) return part.map(valueOf);
  const [[word, of]] = Object.entries(part);
  switch (word) {
  case 'hex': return Buffer.from(of, 'hex');
  case 'get': return names.get(of);
  case 'sha1': return names.get(`sha1 of ${of}`);
  case 'slice': return valueOf(of[0]).subarray(of[1], of[2]);
  case 'cat': return Buffer.concat(of.map((one) => Buffer.from(
    typeof valueOf(one) === 'number' ? `${valueOf(one)}` : valueOf(one))));
  case 'msgpack': {
    const value = Array.isArray(of) ? of.map(valueOf) : of;
    const text = (one) => (Array.isArray(one) ? one.map(text)
      : one instanceof Buffer ? one.latin1Slice() : one);
    const isFlat = (one) => ['string', 'number'].includes(typeof one) ||
      Array.isArray(one) || one instanceof Buffer;
    return Array.isArray(value) && value.every(isFlat)
      ? packed(value.map(text)) : Buffer.from(encode(value));
  }
  default: return part;
  }
}

function fits(pattern, answer) {
  if (Array.isArray(pattern)) {
    return Array.isArray(answer) && answer.length === pattern.length &&
      pattern.every((one, i) => fits(one, answer[i]));
  }
  const [word, of] = pattern && typeof pattern === 'object'
    ? Object.entries(pattern)[0] : [];
  if (word === 'set') names.set(of, answer);
  if (word === 'set' || word === 'any') return true;
  if (word === 'mod') return answer % of[0] === of[1];
  if (word === 'error') {
    return answer instanceof Error &&
      answer.message.replace(/^ERR /, '').startsWith(of);
  }
  const value = valueOf(pattern);
  if (value === null || typeof value === 'number') return answer === value;
  return answer instanceof Buffer && answer.equals(Buffer.from(value));
}

test('calls and answers are those of the vectors', async () => {
  const lines = readFileSync(path.join(WEIR_DOCS, 'wire-vectors.jsonl'), 'utf8')
    .trim().split('\n').map((line) => JSON.parse(line));
  const server = await new TestServer().start();
  let packs = 0;
  try {
    for (const name of lines[0].scripts) {
      const text = readFileSync(path.join(WEIR_SCRIPTS, 'delay',
                                          `${name}.lua`));
      names.set(`sha1 of ${name}`,
                createHash('sha1').update(text).digest('hex'));
      await server.redis.script('LOAD', text);
    }
    for (const { call, answer, until: isAwaited } of lines) {
      if (!call) continue;
      let told;
      const isAnswered = async () => {
        told = await server.redis.callBuffer(...call.map(valueOf))
          .catch((error) => error);
        return fits(answer, told);
      };
      if (isAwaited) await until(isAnswered, JSON.stringify(call));
      else assert.ok(await isAnswered(), `${JSON.stringify(call)}: ${told}`);
      for (const bytes of call[0] === 'MGET' ? told.filter(Boolean) : []) {
        const [version, , , , , , , body] = decode(recordIn(bytes, 0));
        assert.equal(version, 1);
        assert.notEqual(body, undefined);
        packs++;
      }
    }
  } finally {
    await server.end();
  }
  assert.ok(packs > 0);
});

test('the example of docs/wire.md is the pack of that job', () => {
  const page = readFileSync(path.join(WEIR_DOCS, 'wire.md'), 'utf8');
  const [example] = /^5731.*$/m.exec(page);
  const job = newJob({ id: '42', body: { order: 42 } });
  assert.equal(writePack({ jobs: [job] }).toString('hex'),
               example.replaceAll(' ', ''));
});
