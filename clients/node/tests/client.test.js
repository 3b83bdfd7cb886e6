// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import cluster from 'node:cluster';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, beforeEach, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { Client } from '../index.js';
import { letters } from '../lib/wire.js';
import { TestServer } from './server.js';

let server;
let client;
before(async () => {
  server = await new TestServer().start();
  client = new Client(server.url, { log: () => {} });
});
beforeEach(() => server.redis.flushall());
after(async () => {
  await client?.close();
  await server?.end();
});

test('a job with an id is added once', async () => {
  const options = { id: 'order-42', delayMs: 3600000, retry: '1s ...',
    ttlMs: 5000, url: 'http://a/', headers: { user: 'anna' } };
  const added = await client.add('orders', { order: 42 }, options);
  assert.deepEqual(added, { id: 'order-42', outcome: 'added' });
  const again = await client.add('orders', { order: 43 }, options);
  assert.deepEqual(again, { id: 'order-42', outcome: 'exists' });
  assert.deepEqual(await client.topics(), ['orders']);
  const job = await client.look('orders', 'order-42');
  assert.equal(job.state, 'scheduled');
  assert.deepEqual(job.body, { order: 42 });
  assert.deepEqual(job.options, { retry: '1s ...', ttl_ms: 5000,
    url: 'http://a/', headers: { user: 'anna' } });
});

test('a job without an id is told the one that was made', async () => {
  const { id, outcome } = await client.add('t', null, { delayMs: 1000 });
  assert.equal(outcome, 'added');
  assert.match(id, /^@[-\w]{12}00$/);
  assert.equal((await client.look('t', id)).body, null);
});

test('many jobs are added in packs, results in their order', async () => {
  const jobs = Array.from({ length: 3000 }, (_, n) => ({ body: { n },
    id: n % 3 ? `job-${n}` : undefined, delayMs: 3600000 }));
  jobs.push({ id: 'job-1', body: 0, delayMs: 3600000 });
  const results = await client.addMany('t', jobs);
  assert.deepEqual(results.map(({ outcome }) => outcome),
                   [...Array(3000).fill('added'), 'exists']);
  for (const n of [0, 1, 1500, 2999]) {
    assert.deepEqual((await client.look('t', results[n].id)).body, { n });
  }
  const counts = await client.counts('t');
  assert.equal(counts.waiting, 3000);
  assert.ok((await server.redis.keys('*:p:*')).length < 30);
});

test('jobs of one call have due times of their own', async () => {
  const at = Date.now() + 7200000;
  await client.addMany('t', [{ id: 'a', body: 1, atMs: at },
    { id: 'b', body: 2, atMs: at + 1000 }, { id: 'c', body: 3, delayMs: 0 },
    { id: 'd', body: 4, delayMs: 10000 }]);
  assert.equal((await client.look('t', 'a')).dueMs, at);
  assert.equal((await client.look('t', 'b')).dueMs, at + 1000);
  assert.equal((await client.look('t', 'c')).state, 'ready');
  assert.equal((await client.look('t', 'd')).state, 'scheduled');
});

test('the bound of a topic and another kind are told', async () => {
  await server.redis.hset('weir:{t}:options', 'max_pending', '2');
  await server.redis.hset('weir:{t}:meta', 'max_pending', '2', 'kind', 'delay');
  const results = await client.addMany('t',
                                       [1, 2, 3].map((body) => ({ body })));
  assert.deepEqual(results.map(({ outcome }) => outcome),
                   ['added', 'added', 'full']);
  await server.redis.hset('weir:{s}:meta', 'kind', 'sync');
  await assert.rejects(client.add('s', 1), { code: 'EKIND' });
  await assert.rejects(client.add('s', 1, { id: 'a' }), { code: 'EKIND' });
});

test('a job whose unique key another one has is told that one', async () => {
  await server.redis.hset('weir:{t}:options', 'unique', 'body.order');
  await server.redis.hset('weir:{t}:meta', 'kind', 'delay', 'revision', '1');
  const add = (id) => client.add('t', { order: 7 }, { id, delayMs: 1000000 });
  assert.deepEqual(await add('a'), { id: 'a', outcome: 'added' });
  assert.deepEqual(await add('b'), { id: 'a', outcome: 'held' });
  assert.equal((await client.add('t', { order: 7 })).outcome, 'added');
});

test('what cannot be a job is refused before anything is sent', async () => {
  const wrong = [['a b', 1, {}], ['t', 1, { id: 'a b' }],
    ['t', 1, { id: '@a' }], ['t', 1, { delayMs: -1 }],
    ['t', 1, { delayMs: 1.5 }],
    ['t', 1, { retry: 'soon' }], ['t', 1, { ttlMs: '5s' }],
    ['t', 'x'.repeat(1048577), {}], ['t', 'x'.repeat(1048577), { id: 'a' }]];
  for (const call of wrong) {
    await assert.rejects(client.add(...call), RangeError, String(call));
  }
  await assert.rejects(client.addMany('t', [{ body: 1 }, { id: '{', body: 1 }]),
                       RangeError);
  assert.deepEqual(await server.redis.keys('*:p:*'), []);
});

test('an add is repeated until it is answered, and adds once', async () => {
  const results = [];
  const cut = () => server.redis.call('CLIENT', 'KILL', 'TYPE', 'normal',
                                      'SKIPME', 'yes');
  for (let i = 0; i < 40; i++) {
    const adds = [client.addMany('t', Array(100).fill({ body: i })),
      client.add('t', i, { id: `id-${i}` })];
    await sleep(i % 4);
    await cut();
    results.push(...(await Promise.all(adds)).flat());
  }
  assert.equal(new Set(results.map(({ id }) => id)).size, 40 * 101);
  assert.equal((await client.counts('t')).waiting, 40 * 101);
});

test('what is larger than the server takes is refused soon', async () => {
  for (const flag of ['--proto-max-bulk-len', '--client-query-buffer-limit']) {
    const small = await new TestServer().start(flag, '1048576');
    const one = new Client(small.url, { log: () => {} });
    await small.redis.hset('weir:{t}:options', 'max_body', '8MiB');
    await one.add('t', 1);
    const large = { body: 'x'.repeat(2000000) };
    const [refused, , other] = await Promise.allSettled([
      one.addMany('t', [large]), one.add('t', large.body, { id: 'a' }),
      one.add('t', 2)]);
    assert.match(String(refused.reason), /bulk/);
    assert.equal(other.value.outcome, 'added');
    await assert.rejects(one.add('t', large.body, { id: 'a' }), /bulk/);
    assert.equal((await one.counts('t')).waiting, 2);
    one.close();
    await small.end();
  }
});

test('scripts that the server forgot are loaded again', async () => {
  await client.add('t', 1);
  await server.redis.script('FLUSH');
  assert.equal((await client.add('t', 1)).outcome, 'added');
  await server.redis.script('FLUSH');
  assert.equal((await client.add('t', 1, { id: 'a' })).outcome, 'added');
});

test('a job is deleted once', async () => {
  await client.add('t', 1, { id: 'a', delayMs: 1000000 });
  const { id } = await client.add('t', 2, { delayMs: 1000000 });
  assert.equal((await client.delete('t', 'a')).body, 1);
  assert.equal(await client.delete('t', 'a'), null);
  assert.equal((await client.delete('t', id)).body, 2);
  assert.equal(await client.look('t', id), null);
  assert.equal((await client.counts('t')).waiting, 0);
  assert.equal(await client.counts('nothing'), null);
});

test('a prefix separates projects', async () => {
  const shop = new Client(server.url, { prefix: 'shop', log: () => {} });
  await shop.add('t', 1);
  assert.deepEqual(await shop.topics(), ['t']);
  assert.deepEqual(await client.topics(), []);
  await shop.close();
});

test('what push takes is an option of add', async () => {
  const add = (options) => client.add('t', 1, { delayMs: 1000000, ...options });
  const first = await add({ unique: 'k', uniqueFor: '1h', retry: '1s',
    ttlMs: 5000, url: 'http://a/', headers: { a: 'b' } });
  assert.equal(first.outcome, 'added');
  assert.deepEqual(await add({ unique: 'k' }),
                   { id: first.id, outcome: 'held' });
  const other = await add({ id: 'a', unique: 'k', uniqueElse: 'debounce',
    maxWait: '1h' });
  assert.deepEqual(other, { id: 'a', outcome: 'added' });
  assert.equal(await client.look('t', first.id), null);
  const { options } = await client.look('t', 'a');
  assert.equal(options.unique, 'k');
  const { id } = await add({ key: 'customer-7', priority: 'high', retry: '1s',
    ttlMs: 5000, url: 'http://a/', headers: { a: 'b' } });
  assert.deepEqual((await client.look('t', id)).options, { key: 'customer-7',
    priority: 2, retry: '1s', ttl_ms: 5000, url: 'http://a/',
    headers: { a: 'b' } });
});

test('a push without an id is repeated and adds one job', async () => {
  for (let i = 0; i < 40; i++) {
    const add = client.add('t', i, { key: 'k', delayMs: 1000000 });
    await sleep(i % 4);
    await server.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME',
                            'yes');
    assert.equal((await add).outcome, 'added');
  }
  assert.equal((await client.counts('t')).waiting, 40);
});

test('numbers arrive as they were given', async () => {
  const body = [9007199254740993n, -(2n ** 63n), 2n ** 64n - 1n, 0.1, -0, 7n];
  const { id } = await client.add('t', body);
  assert.deepStrictEqual((await client.look('t', id)).body,
                         [...body.slice(0, 5), 7]);
});

test('a body that claims more than it has is looked at and deleted',
     async () => {
       const bomb = Buffer.concat([...Array(60).fill(
         Buffer.from([0xdd, 1, 0xff, 0xff, 0xff])), Buffer.from([0xc0])]);
       const { id } = await client.add('t', 'x'.repeat(bomb.length - 3));
       const [key] = await server.redis.keys('*:p:*');
       const pack = await server.redis.getBuffer(key);
       bomb.copy(pack, pack.length - bomb.length);
       await server.redis.set(key, pack);
       for (const call of ['look', 'delete']) {
         const { body, malformed } = await client[call]('t', id);
         assert.deepEqual([body, malformed],
                          [undefined, 'it says more than it has']);
       }
       assert.equal(await client.look('t', id), null);
     });

test('the body fits what the topic takes now', async () => {
  await client.add('t', 1);
  await server.redis.hset('weir:{t}:options', 'max_body', '2MiB');
  assert.equal((await client.add('t', 'x'.repeat(1048577))).outcome, 'added');
});

test('the tick of a schedule is not told as deleted', async () => {
  await client.add('t', 1, { id: 'c@next', delayMs: 1000000 });
  await server.redis.hset('weir:{t}:cron', 'c', 'A 0 0 x');
  await assert.rejects(client.delete('t', 'c@next'), /tick of a schedule/);
  assert.equal((await client.look('t', 'c@next')).state, 'scheduled');
});

test('an address may have a prefix', async () => {
  const shop = new Client(`${server.url}?prefix=shop`, { log: () => {} });
  await shop.add('t', 1);
  assert.deepEqual(await server.redis.smembers('shop:topics'), ['t']);
  shop.close();
});

test('a server that stopped is not waited for beyond timeoutMs', async () => {
  await client.add('t', 1);
  server.process.kill('SIGSTOP');
  try {
    for (const call of [() => client.add('t', 1, { timeoutMs: 50 }),
      () => client.add('t', 1, { id: 'a', timeoutMs: 50 }),
      () => client.addMany('t', [{}], { timeoutMs: 50 }),
      () => client.look('t', 'a', { timeoutMs: 50 }),
      () => client.counts('t', { timeoutMs: 50 })]) {
      await assert.rejects(call, { code: 'EUNKNOWN', message:
        /^no answer from the server at unix:.*: it did not answer in time/ });
    }
  } finally {
    server.process.kill('SIGCONT');
  }
});

/** Stages packs under the names that come after the one of this job, while the
 * clock stands. */
async function takeNames(id, count) {
  const digits = [...Array(64).keys()].map((digit) => letters(digit, 1));
  const number = [...id.slice(1, 9)].reduce(
    (sum, letter) => 64 * sum + digits.indexOf(letter), 0);
  for (let i = 1; i <= count; i++) {
    const key = `weir:{t}:p:${letters(number + i, 8)}${id.slice(9, 13)}`;
    await server.redis.set(key, 'of another client', 'PX', 60000);
  }
}

test('a name that another client staged is given up', async (t) => {
  const now = Date.now();
  t.mock.method(Date, 'now', () => now);
  const one = new Client(server.url, { log: () => {} });
  await takeNames((await one.add('t', 'first')).id, 3);
  const { id } = await one.add('t', 'second');
  assert.equal((await one.look('t', id)).body, 'second');
  assert.equal((await one.counts('t')).waiting, 3); // one is the other client's
  assert.equal(await server.redis.get('weir:producers'), '2');
  one.close();
});

test('a call slot that another client has is given up', async () => {
  const one = new Client(server.url, { log: () => {} });
  await one.add('t', 'first');
  const [slot] = await server.redis.hkeys('weir:{t}:seen');
  await server.redis.hset('weir:{t}:seen', slot, '999999999999999.1 ');
  const { id } = await one.add('t', 'second');
  assert.equal((await one.look('t', id)).body, 'second');
  assert.equal((await one.counts('t')).waiting, 2);
  assert.equal(await server.redis.get('weir:producers'), '2');
  one.close();
});

test('what looks like a client and is none adds nothing', async () => {
  assert.throws(() => structuredClone(client), { name: 'DataCloneError' });
  for (const one of [{ ...client }, Object.assign({}, client),
                     Object.create(client)]) {
    await assert.rejects(async () => one.add('t', 1), TypeError);
  }
});

test('a copy of a client is refused before it adds anything', async () => {
  await client.add('t', 0);
  const prototype = Object.getPrototypeOf(client);
  const copies = [{ ...client }, Object.create(client), new Proxy(client, {}),
    Object.assign(Object.create(prototype), client)];
  for (const copy of copies) {
    await assert.rejects(async () => copy.add('t', 1), TypeError);
  }
  assert.throws(() => structuredClone(client), { name: 'DataCloneError' });
  assert.throws(() => new Thread('', { eval: true, workerData: client }),
                { name: 'DataCloneError' });
  assert.equal((await client.counts('t')).waiting, 1);
});

test('threads with clients of their own add all that they say', async () => {
  const { href } = new URL('../index.js', import.meta.url);
  const source = `const { workerData, parentPort } =
      require('node:worker_threads');
    import(${JSON.stringify(href)}).then(async ({ Client }) => {
      const client = new Client(workerData);
      const adds = Array.from({ length: 200 }, (_, n) => client.add('t', n));
      const results = await Promise.all(adds);
      client.close();
      parentPort.postMessage(results.map(({ id }) => id));
    });`;
  const told = await Promise.all(Array.from({ length: 4 }, () =>
    new Promise((resolve, reject) => {
      new Thread(source, { eval: true, workerData: server.url })
        .on('message', resolve).on('error', reject);
    })));
  assert.equal(new Set(told.flat()).size, 800);
  assert.equal((await client.counts('t')).waiting, 800);
});

test('processes of cluster and child_process add all that they say', async () => {
  const file = fileURLToPath(new URL('adds.js', import.meta.url));
  cluster.setupPrimary({ exec: file, args: [server.url], execArgv: [] });
  const processes = [
    ...Array.from({ length: 4 }, () => cluster.fork()),
    ...Array.from({ length: 4 }, () => fork(file, [server.url],
                                            { execArgv: [] }))];
  const told = await Promise.all(processes.map((one) =>
    new Promise((resolve, reject) => {
      one.on('message', resolve).on('error', reject)
        .on('exit', (code) => reject(new Error(`exit code ${code}`)));
    })));
  assert.equal(new Set(told.flat()).size, 1600);
  assert.equal((await client.counts('t')).waiting, 1600);
});

test('machines that were restored from one picture add all jobs', async () => {
  const now = Date.now();
  mock.method(crypto, 'randomBytes', (size) => Buffer.alloc(size));
  mock.method(Date, 'now', () => now);
  syncBuiltinESMExports();
  try {
    for (let i = 1; i <= 40; i++) { // some begin in the same millisecond
      const clients = [0, 1].map(() => new Client(server.url));
      for (const one of clients) await one.counts('t'); // it is connected
      for (const one of clients) {
        await server.redis.set('weir:producers', 0);
        await one.addMany('t', []); // takes a name
      }
      const { id } = await clients[0].add('t', 'first');
      assert.ok(await client.delete('t', id)); // its pack is gone
      await clients[1].add('t', 'second');
      assert.equal((await client.counts('t')).waiting, i);
      clients.forEach((one) => one.close());
    }
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});
