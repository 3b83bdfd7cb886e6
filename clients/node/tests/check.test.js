// SPDX-License-Identifier: MIT
// What a caller may say: a refusal names it, and nothing is sent. No server is
// needed: a call that asked one would be a WeirError.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { Client, Retry, Snooze, Worker } from '../index.js';
import { Extension, decode, encode } from '../lib/msgpack.js';

const NOBODY = 'unix:///nowhere/redis.sock';
const quiet = { log: () => {} };

async function refusal(part, call) {
  let said = 'nothing was refused';
  try {
    await call();
  } catch (error) {
    assert.equal(error.name, 'RangeError', error.stack);
    said = error.message;
  }
  assert.ok(said.includes(part), `wanted ${part}, got ${said}`);
  assert.match(said, /^[ -~]+$/);
}

async function withClient(run) {
  const client = new Client(NOBODY, quiet);
  try {
    await run(client);
  } finally {
    client.close();
  }
}

const NUMBERS = ['5', '', true, NaN, Infinity, -1, 1.5, 5n, null, [5], {},
  new Date(), Buffer.from('5'), Symbol('5'), () => 5, 2 ** 53, 1e300];
const TEXTS = ['', 5, null, true, ['x'], Buffer.from('x'), 'x'.repeat(2049),
  '\ud800', {}, new String('x')];
const PACKED = {
  id: ['', 'a b', `@${'0'.repeat(14)}`, '!a', '{', 'a}', 'a\n', 'ä',
    'x'.repeat(129), 5, 0, null, false, ['a'], Buffer.from('a')],
  delayMs: [...NUMBERS, 3650 * 86400000 + 1], ttlMs: [...NUMBERS, 0, -0],
  atMs: [...NUMBERS, 10000000000000],
  retry: ['', ' ', 'soon', '0s', '366d', '1.5h', '3m1h', '1h1h', '15s\n3m',
    '15s\u00a03m', '\u0663s', '...', 'none 3s', '3s ... 5s', '3s,5s', 5, null,
    ['15s'], Array(65).fill('1s').join(' '), '9999999999999s', 3n],
  url: TEXTS,
  headers: [{ a: 5 }, { a: '' }, { '': 'a' }, { a: ' b' }, { a: 'b\n' },
    { a: 'ä' }, { 'a b': 'c' }, { 'weir.x': 'y' }, { A: 'x', a: 'y' },
    { a: 'x'.repeat(256) }, [['a', 'b']], 'a=b', 5, null, new Map(),
    { a: null }, { a: undefined }, new Headers(),
    Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`h${i}`, 'x']))],
};
const KEYED = { key: TEXTS, unique: TEXTS,
  priority: ['High', '', 1, 0, null, true, ['high']],
  uniqueFor: ['', '0s', 'always', 'until-Done', 600000, '3651d', null],
  uniqueElse: ['', 'drop', 'Reject', 1, null],
  maxWait: ['', 'soon', '0ms', 5, '3651d', null] };

test('each option refuses what is none', () => withClient(async (client) => {
  for (const [name, values] of Object.entries({ ...PACKED, ...KEYED })) {
    for (const value of values) {
      const word = name === 'headers' ? 'header' : `the ${name}`;
      const more = name in KEYED && name !== 'unique' ? { unique: 'k' } : {};
      await refusal(word, () => client.add('t', 1, { [name]: value, ...more }));
      if (name in KEYED) continue;
      await refusal(word, () => client.add('t', 1, { id: 'a',
        [name]: value }));
      await refusal(word, () => client.addMany('t', [{ body: 1 },
        { body: 1, [name]: value }]));
    }
  }
}));

test('what the options say together is refused',
     () => withClient(async (client) => {
       const cases = [['delayMs and atMs are two', { delayMs: 0, atMs: 0 }],
         ['uniqueFor says something of a key', { uniqueFor: '5s' }],
         ['uniqueElse says something of a key', { uniqueElse: 'reject' }],
         ['maxWait says something of a key', { maxWait: '5s' }],
         ['throttle needs a window', { unique: 'k', uniqueElse: 'throttle' }],
         ['throttle needs a window', { unique: 'k', uniqueElse: 'throttle',
           uniqueFor: 'until-done' }],
         ['only debounce has maxWait', { unique: 'k', maxWait: '5s' }]];
       for (const [sentence, options] of cases) {
         await refusal(sentence, () => client.add('t', 1, options));
       }
     }));

test('an unknown option is told the one that was meant',
     () => withClient(async (client) => {
       const cases = { delay: 'delayMs', delay_ms: 'delayMs', dealy: 'delayMs',
         countdown: 'delayMs', at: 'atMs', eta: 'atMs', ttl: 'ttlMs',
         attempts: 'retry', backoff: 'retry', jobId: 'id', header: 'headers',
         unique_for: 'uniqueFor', prority: 'priority', timeout: 'timeoutMs' };
       for (const [name, meant] of Object.entries(cases)) {
         await refusal(`"${name}" is no option of add: ${meant} is meant`,
                       () => client.add('t', 1, { [name]: 5 }));
         if (name === 'timeout' || meant.startsWith('unique') ||
             meant === 'priority') continue;
         await refusal(`"${name}" is no option of a job of addMany: ${meant}`,
                       () => client.addMany('t', [{ body: 1, [name]: 5 }]));
       }
       await refusal('"delay" is no option of add: delayMs is meant',
                     () => client.add('t', {}, { delay: 3600000,
                       priority: 'high' }));
       await refusal('"queue" is no option of add; its options are id, delayMs,'
         + ' atMs, retry, ttlMs, url, headers, key, priority, unique, '
         + 'uniqueFor, uniqueElse, maxWait, timeoutMs',
       () => client.add('t', 1, { queue: 1 }));
       await refusal('"body" is no option of add',
                     () => client.add('t', 1, { body: 1 }));
       await refusal('"inherited" is no option of add', () =>
         client.add('t', 1, Object.create({ inherited: 1 })));
       for (const name of Object.keys(KEYED)) {
         await refusal(`"${name}" is no option of addMany`, () =>
           client.addMany('t', [{ body: 1, [name]: '5s' }]));
       }
       for (const [call, ...args] of [['addMany', 't', []], ['look', 't', 'a'],
         ['delete', 't', 'a'], ['counts', 't'], ['topics']]) {
         await refusal(`"timeout" is no option of ${call}: timeoutMs`,
                       () => client[call](...args, { timeout: 5 }));
         for (const value of ['5', 0, -1, NaN, null, 1.5]) {
           await refusal('the timeoutMs', () =>
             client[call](...args, { timeoutMs: value }));
         }
       }
     }));

test('topics, ids and lists are checked', () => withClient(async (client) => {
  for (const topic of ['', 'a b', 'x'.repeat(41), 't\n', 'ä', '{t}', null, 5,
    undefined, ['t'], 't\0', Buffer.from('t')]) {
    for (const call of [() => client.add(topic, 1),
      () => client.addMany(topic, []), () => client.look(topic, 'a'),
      () => client.delete(topic, 'a'), () => client.counts(topic)]) {
      await refusal('the topic', call);
    }
  }
  for (const id of ['', null, undefined, 5, 'a b', 'x'.repeat(129), 'a\n']) {
    await refusal('the id', () => client.look('t', id));
    await refusal('the id', () => client.delete('t', id));
  }
  for (const jobs of ['abc', { body: 1 }, new Set([{ body: 1 }]), null, 5,
    undefined]) {
    await refusal('the jobs', () => client.addMany('t', jobs));
  }
  for (const job of [null, 5, 'x', [1], undefined, new Map(), new Date()]) {
    await refusal('a job of addMany', () => client.addMany('t', [job]));
  }
  await refusal('a job of addMany', () => client.addMany('t', [, { body: 1 }]));
  for (const options of [null, 5, 'x', ['id'], new Map([['delayMs', 5000]]),
    new Set(), new Date(), Promise.resolve({}), /x/]) {
    await refusal('the options of add', () => client.add('t', 1, options));
  }
}));

class Order {
  number = 1;
}

const nested = (levels) => (levels > 1 ? [nested(levels - 1)] : 1);
const circle = [];
circle.push(circle);
const BODIES = [[undefined, 'body is undefined'],
  [{ a: undefined }, 'body.a is undefined'], [[, 1], 'body[0] is undefined'],
  [2 ** 53, 'body is 9007199254740992, which JavaScript may have rounded'],
  [{ n: -(2 ** 53) }, 'body.n is -9007199254740992'], [1e300, 'rounded'],
  [NaN, 'body is NaN'], [{ a: [1, Infinity] }, 'body.a[1] is Infinity'],
  [2n ** 64n, 'beyond 64 bits'], [-(2n ** 63n) - 1n, 'beyond 64 bits'],
  [{ at: new Date() }, 'body.at is a Date'], [new Map(), 'is a Map'],
  [new Set(), 'is a Set'], [/x/, 'is a RegExp'], [new Order(), 'is a Order'],
  [new Error('x'), 'is a Error'], [Promise.resolve(), 'is a Promise'],
  [new String('x'), 'is a String'], [new Number(1), 'is a Number'],
  [new Float64Array(1), 'is a Float64Array'], [new ArrayBuffer(1), 'ArrayBuf'],
  [new Uint16Array(1), 'is a Uint16Array'], [new DataView(new ArrayBuffer(1)),
    'is a DataView'], [new Proxy(new Date(), {}), 'is a Date'],
  [new WeakMap(), 'is a WeakMap'], [new URL('http://a/'), 'is a URL'],
  [Symbol('x'), 'is a symbol'], [() => 1, 'is a function'],
  [Order, 'is a function'], [new Extension(1, Buffer.from('')), 'Extension'],
  [{ [Symbol('k')]: 1 }, 'has a symbol as a key'], [Math, 'no job can carry'],
  ['\ud800', 'body has a lone surrogate'], [{ '\udc00': 1 }, 'lone surrogate'],
  [{ a: 'b'.match(/b/) }, 'body.a is an array with more than its elements'],
  [nested(33), 'is more than 32 levels deep'], [circle, '32 levels'],
  [{ a: [[{ b: new Set() }]] }, 'body.a[0][0].b is a Set']];

test('bodies that would arrive as something else are refused',
     () => withClient(async (client) => {
       for (const [body, part] of BODIES) {
         await refusal(part, () => client.add('t', body));
         await refusal(part, () => client.add('t', body, { id: 'a' }));
         await refusal(part, () => client.addMany('t', [{ body: 1 },
           { body }]));
       }
     }));

test('what is read is what was written', () => {
  for (const value of [null, true, false, 0, 1, 127, 128, 255, 256, 65535,
    65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -1, -32, -33, -128, -129, -32768,
    -32769, -(2 ** 31), -(2 ** 31) - 1, -(2 ** 53) + 1, -0, 1.5, 5e-324,
    2n ** 53n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n), -(2n ** 53n), '', 'ä😀\0',
    'x'.repeat(31), 'x'.repeat(32), 'x'.repeat(255), 'x'.repeat(256),
    'x'.repeat(65536), Buffer.alloc(0), Buffer.alloc(300), Buffer.alloc(70000),
    [], {}, Array(15).fill(1), Array(16).fill(1), Array(70000).fill(1),
    Object.fromEntries(Array.from({ length: 70000 }, (_, i) => [`k${i}`, i])),
    nested(32), JSON.parse('{"__proto__": 1, "a": {"constructor": 2}}')]) {
    assert.deepStrictEqual(decode(encode(value)), value);
  }
  assert.equal(decode(encode(5n)), 5);
  assert.deepEqual(decode(encode(vm.runInNewContext('({ a: [1] })'))),
                   { a: [1] });
  assert.deepEqual(decode(encode(Object.create(null))), {});
  assert.deepEqual(decode(encode(new Uint8Array([1, 2]))), Buffer.from([1, 2]));
  const getter = { get a() { return decode(encode('inner')); }, b: 'outer' };
  assert.deepEqual(decode(encode(getter)), { a: 'inner', b: 'outer' });
  const growing = [{ get a() { return growing.push(0); } }];
  assert.deepEqual(decode(encode(growing)), [{ a: 2 }]);
});

test('bytes that say more than they have cost nothing', () => {
  const bomb = (head) => Buffer.concat([...Array(60).fill(
    Buffer.from([head, 1, 0xff, 0xff, 0xff])), Buffer.from([0xc0])]);
  for (const bytes of [bomb(0xdd), bomb(0xdf), bomb(0xdb), bomb(0xc6),
    bomb(0xc9), Buffer.from('ddffffffff', 'hex'), Buffer.from('df7fffffffc0',
      'hex'), Buffer.from('c1', 'hex'), Buffer.from(''), Buffer.from('c0c0',
      'hex'), Buffer.from('dc', 'hex'), Buffer.from('cf00', 'hex'),
    Buffer.from('c7', 'hex'), Buffer.from('8191c0c0', 'hex'),
    Buffer.concat([Buffer.alloc(33, 0x91), Buffer.from([0xc0])])]) {
    assert.throws(() => decode(bytes), RangeError);
  }
  assert.deepEqual(decode(Buffer.from('d6ff00000001', 'hex')),
                   new Extension(-1, Buffer.from([0, 0, 0, 1])));
  assert.deepEqual(decode(Buffer.from('8101a178', 'hex')), { 1: 'x' });
});

test('settings of clients and workers are checked', async () => {
  const t = () => {};
  const cases = [['the prefix', { prefix: '' }], ['the prefix', { prefix: 5 }],
    ['the prefix', { prefix: 'a b' }], ['the prefix', { prefix: null }],
    ['the log', { log: 'x' }], ['the log', { log: null }],
    ['the options', null], ['the options', 'x']];
  for (const [part, options] of cases) {
    await refusal(part, () => new Client(NOBODY, options));
    await refusal(part, () => new Worker(NOBODY, { t }, options));
  }
  await refusal('the timeoutMs', () => new Client(NOBODY, { timeoutMs: '5' }));
  await refusal('"drain" is no option of Worker: drainMs is meant',
                () => new Worker(NOBODY, { t }, { drain: 5 }));
  await refusal('"timeoutMs" is no option of Worker', () =>
    new Worker(NOBODY, { t }, { timeoutMs: 5 }));
  for (const drainMs of ['5', -1, NaN, null, 1.5, Infinity]) {
    await refusal('the drainMs', () => new Worker(NOBODY, { t }, { drainMs }));
  }
  for (const concurrency of [0, -1, 1.5, '8', NaN, null, true, 1e9]) {
    await refusal('the concurrency', () =>
      new Worker(NOBODY, { t: { handle: t, concurrency } }));
  }
  await refusal('"concurency" is no option of the topic t: concurrency', () =>
    new Worker(NOBODY, { t: { handle: t, concurency: 5 } }));
  for (const topics of [{}, null, undefined, 'x', [], t, [t], new Map()]) {
    await refusal('the topics are', () => new Worker(NOBODY, topics));
  }
  for (const topic of ['', 'a b', 'ä']) {
    await refusal('the topic', () => new Worker(NOBODY, { [topic]: t }));
  }
  for (const handler of [null, 5, 'x', {}, { handle: 'x' }, [t], undefined]) {
    await refusal('t ', () => new Worker(NOBODY, { t: handler }));
  }
  for (const handler of [function* one() { yield 1; },
    async function* one() { yield 1; }]) {
    await refusal('the handler of t is a generator', () =>
      new Worker(NOBODY, { t: handler }));
  }
});

test('an address is one', async () => {
  for (const address of [null, 5, 'localhost', 'http://a/', '']) {
    await refusal('the address', () => new Client(address, quiet));
  }
  await refusal('the option db', () => new Client(`${NOBODY}?db=5`, quiet));
  await refusal('give prefix', () => new Client({ path: '/nowhere/redis.sock',
    keyPrefix: 'x:' }, quiet));
  await refusal('give one of them', () => new Client(`${NOBODY}?prefix=a`,
                                                     { prefix: 'b' }));
  await refusal('the prefix', () => new Client(`${NOBODY}?prefix=a%20b`,
                                               quiet));
});

test('delays of verdicts are checked', async () => {
  for (const delayMs of ['5s', '5', '', NaN, -1, 1.5, null, 1e13, 5n, [5]]) {
    await refusal('the delayMs', () => new Retry('x', { delayMs }));
    await refusal('the delayMs', () => new Snooze(delayMs));
  }
  await refusal('the delayMs undefined', () => new Snooze());
});

test('a server that was never there is an error that names it', async () => {
  const client = new Client(NOBODY, { ...quiet, timeoutMs: 50 });
  const wanted = { code: 'ECONN', message:
    /^no answer from the server at unix:\/\/\/nowhere\/redis.sock: .*ENOENT/ };
  await assert.rejects(client.add('t', 1), wanted);
  await assert.rejects(client.counts('t'), wanted);
  client.close();
  const other = new Client(NOBODY, quiet);
  await assert.rejects(other.look('t', 'a', { timeoutMs: 50 }), wanted);
  other.close();
});
