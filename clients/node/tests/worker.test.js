// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Fail, Retry, Snooze, Worker } from '../index.js';
import { TestServer, until } from './server.js';

let server;
let client;
let workers;
let log;
beforeEach(async () => {
  server = await new TestServer().start();
  client = new Client(server.url, { log: () => {} });
  workers = [];
  log = [];
  await set('t', 'lease', '1m'); // a stall is no fault of the worker's
});
afterEach(async () => {
  for (const { worker, over } of workers) {
    worker.stop();
    worker.stop();
    await over;
  }
  await client.close();
  await server.end();
});

function work(topics, options) {
  const worker = new Worker(server.url, topics,
                            { log: (line) => log.push(line), ...options });
  const over = worker.run({ signals: [] });
  workers.push({ worker, over });
  return { worker, over };
}

const set = (topic, ...options) =>
  Promise.all([server.redis.hset(`weir:{${topic}}:options`, ...options),
    server.redis.hset(`weir:{${topic}}:meta`, 'kind', 'delay'),
    server.redis.hincrby(`weir:{${topic}}:meta`, 'revision', 1)]);
const isEmpty = async (topic) => {
  const counts = await client.counts(topic);
  return counts && counts.waiting === 0 && counts.running === 0;
};

test('jobs run and leave nothing behind', async () => {
  const bodies = [];
  await client.addMany('t', Array.from({ length: 2000 }, (_, n) =>
    ({ body: n, id: n % 2 ? `job-${n}` : undefined })));
  work({ t: async (job) => { bodies.push(job.body); } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(bodies.sort((a, b) => a - b),
                   Array.from({ length: 2000 }, (_, n) => n));
  assert.equal((await client.counts('t')).done, 2000);
  const ids = await server.redis.hkeys('weir:{t}:ids');
  assert.deepEqual(ids.filter((id) => id !== '!'), []);
  assert.deepEqual(await server.redis.keys('weir:{t}:p:*'), []);
  assert.equal(await server.redis.zcard('weir:{t}:lease'), 0);
});

test('a handler sees all of its job', async () => {
  const seen = [];
  work({ t: (job) => { seen.push(job); } });
  await client.add('t', { a: [1, 'ä', Buffer.from([0])] }, { id: 'a',
    url: 'http://a/', headers: { user: 'anna' } });
  const [job] = await until(() => seen.length && seen, 'it ran');
  assert.equal(job.id, 'a');
  assert.equal(job.topic, 't');
  assert.equal(job.attempt, 1);
  assert.deepEqual([job.failures, job.timeouts, job.crashes, job.snoozes],
                   [0, 0, 0, 0]);
  assert.deepEqual(job.body.a.slice(0, 2), [1, 'ä']);
  assert.equal(job.url, 'http://a/');
  assert.deepEqual(job.headers, { user: 'anna' });
  assert.ok(Math.abs(job.addedMs - Date.now()) < 60000);
  assert.equal(job.signal.aborted, false);
});

test('a sleeping worker is woken by an add', async () => {
  const ran = [];
  await set('t', 'lease', '1h');
  const { worker } = work({ t: (job) => { ran.push(job.id); } });
  await until(() => server.redis.zscore('weir:{t}:idle', worker.name),
              'it sleeps');
  await until(async () => (await server.redis.pubsub('CHANNELS')).length,
              'it listens');
  await client.add('t', 1, { id: 'a' });
  await until(() => ran.length, 'it ran');
});

test('an error is a retry by the ladder, until the job is dead', async () => {
  const attempts = [];
  await set('t', 'retry', '1ms 2ms');
  work({ t: (job) => {
    attempts.push([job.id, job.attempt]);
    throw new Error(`attempt ${job.attempt}`);
  } });
  await client.add('t', { a: 1.5 }, { id: 'a' });
  const { id } = await client.add('t', 2);
  await until(() => isEmpty('t'), 'it is empty');
  for (const name of ['a', id]) {
    assert.deepEqual(attempts.filter(([one]) => one === name)
      .map(([, attempt]) => attempt), [1, 2, 3]);
    const job = await client.look('t', name);
    assert.equal(job.state, 'dead');
    assert.equal(job.attempt, 3);
    assert.equal(job.failures, 3);
    assert.equal(job.options.reason, 'exhausted');
    assert.match(job.options.error,
                 /^Error: attempt 3 \(worker\.test\.js:\d+\)$/);
    assert.ok(Math.abs(job.options.added_ms - Date.now()) < 60000);
  }
  assert.deepEqual((await client.look('t', 'a')).body, { a: 1.5 });
});

test('verdicts are returned or thrown', async () => {
  const seen = [];
  work({ t: async (job) => {
    seen.push(job.id);
    const isFirst = seen.filter((id) => id === job.id).length === 1;
    if (job.id === 'snooze' && isFirst) return new Snooze(1);
    if (job.id === 'retry' && isFirst) throw new Retry('later', { delayMs: 1 });
    if (job.id === 'fail') throw new Fail('never');
    return undefined;
  } });
  await client.addMany('t', ['snooze', 'retry', 'fail', 'done'].map((id) =>
    ({ id, body: null, retry: '1h' })));
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(seen.sort(), ['done', 'fail', 'retry', 'retry', 'snooze',
    'snooze']);
  const dead = await client.look('t', 'fail');
  assert.deepEqual([dead.options.reason, dead.options.error, dead.failures],
                   ['failed', 'never', 1]);
  const counts = await client.counts('t');
  assert.deepEqual([counts.done, counts.failed, counts.retried],
                   [3, 1, 1]);
});

test('a handler knows how often its job failed', async () => {
  const seen = [];
  await set('t', 'timeout', '50ms', 'retry', '1ms 1ms 1ms');
  work({ t: async (job) => {
    seen.push([job.failures, job.timeouts, job.snoozes]);
    if (seen.length === 1) throw new Error('no');
    if (seen.length === 2) throw new Snooze(1);
    if (seen.length === 3) await new Promise(() => {});
  } });
  await client.add('t', 1);
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(seen, [[0, 0, 0], [1, 0, 0], [1, 0, 1], [2, 1, 1]]);
});

test('a fault is logged with its stack, and the reason names its place',
     async () => {
       const text = 'ä'.repeat(300);
       work({ t: () => { throw new TypeError(text); } });
       await client.add('t', 1, { id: 'a', retry: 'none' });
       await until(() => isEmpty('t'), 'it is empty');
       const { options } = await client.look('t', 'a');
       assert.match(options.error,
                    /^TypeError: ä{70,} \(worker\.test\.js:\d+\)$/);
       assert.ok(Buffer.byteLength(options.error) <= 200);
       const [line] = log.filter((one) => one.includes('job a, attempt 1: '));
       assert.match(line, /^t: job a, attempt 1: TypeError: ä+\n +at .*\.js:/);
     });

test('what a worker lacks costs no job an attempt', async () => {
  const failed = (code) => Object.assign(new Error(code), { code });
  const shortages = ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM',
    'ERR_MEMORY_ALLOCATION_FAILED'].map(failed);
  shortages.push(new RangeError('Array buffer allocation failed'),
                 new TypeError('fetch failed', { cause: failed('EMFILE') }));
  const seen = new Set();
  await set('t', 'retry', 'none');
  work({ t: (job) => {
    if (!seen.has(job.body)) {
      seen.add(job.body);
      throw shortages[job.body];
    }
    assert.deepEqual([job.attempt, job.failures, job.snoozes], [1, 0, 1]);
  } });
  await client.addMany('t', shortages.map((_, body) => ({ body })));
  await until(() => isEmpty('t'), 'it is empty');
  const { done, dead } = await client.counts('t');
  assert.deepEqual([done, dead], [shortages.length, 0]);
  assert.match(log[0], /^t: job .*: Error: EMFILE\n/);
});

test('other codes and size limits are faults', async () => {
  await set('t', 'retry', 'none');
  work({ t: (job) => {
    if (job.body) throw Object.assign(new Error('a'), { code: 'ENOENT' });
    throw new RangeError('Invalid array length');
  } });
  await client.addMany('t', [{ body: true }, { body: false }]);
  await until(() => isEmpty('t'), 'it is empty');
  assert.equal((await client.counts('t')).dead, 2);
});

test('a verdict is no fault, and is not logged', async () => {
  work({ t: () => { throw new Retry('later'); }, u: () => new Fail('never') });
  await client.add('t', 1, { id: 'a', retry: 'none' });
  await client.add('u', 1, { id: 'b' });
  await until(async () => await isEmpty('t') && isEmpty('u'), 'both ended');
  assert.equal((await client.look('t', 'a')).options.error, 'later');
  assert.equal((await client.look('u', 'b')).options.error, 'never');
  assert.deepEqual(log, []);
});

test('a generator that a handler returns is not done', async () => {
  work({ t: () => (function* one() { yield 1; })() });
  await client.add('t', 1, { id: 'a', retry: 'none' });
  await until(() => isEmpty('t'), 'it is empty');
  assert.match((await client.look('t', 'a')).options.error,
               /^TypeError: the handler returned a generator/);
});

test('a body that claims more than it has is malformed', async () => {
  const bomb = Buffer.concat([...Array(60).fill(
    Buffer.from([0xdd, 1, 0xff, 0xff, 0xff])), Buffer.from([0xc0])]);
  await client.add('t', 'x'.repeat(bomb.length - 3), { id: 'a' });
  await client.add('t', 2, { id: 'b' });
  for (const key of await server.redis.keys('*:p:*')) {
    const pack = await server.redis.getBuffer(key);
    if (pack.length < bomb.length) continue;
    bomb.copy(pack, pack.length - bomb.length);
    await server.redis.set(key, pack);
  }
  const ran = [];
  work({ t: (job) => { ran.push(job.body); } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(ran, [2]);
  assert.equal((await client.look('t', 'a')).options.reason, 'malformed');
});

test('a worker whose server is not there says so', async () => {
  const worker = new Worker('unix:///nowhere/redis.sock', { t: () => {} },
                            { log: () => {} });
  await assert.rejects(worker.run({ signals: [] }), { code: 'ECONN',
    message: /^no answer from the server at unix:\/\/\/nowhere.redis.sock:/ });
});

test('a time that is none is a retry', async () => {
  const errors = [];
  work({ t: (job) => {
    if (job.attempt > 1) return;
    try {
      throw new Snooze('5s');
    } catch (error) {
      errors.push(error.name);
      throw error;
    }
  } });
  await client.add('t', 1, { id: 'a', retry: '1ms' });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(errors, ['RangeError']);
});

test('what was thrown or its delay may be anything', async () => {
  const late = new Retry('later');
  late.delayMs = '5s';
  const early = new Snooze(1);
  early.delayMs = undefined;
  const thrown = { none: undefined, bare: Object.create(null), late, early,
    foreign: Object.assign(new Error('no'), { delayMs: -1 }) };
  work({ t: (job) => {
    if (job.id in thrown) throw thrown[job.id];
    return new Retry('it is not', { delayMs: NaN });
  } });
  const ids = [...Object.keys(thrown), 'nan'];
  await client.addMany('t', ids.map((id) => ({ id, body: 1, retry: 'none' })));
  await until(() => isEmpty('t'), 'it is empty');
  const errors = await Promise.all(ids.map(async (id) =>
    (await client.look('t', id)).options.error));
  const none = 'its text or delay is none';
  assert.deepEqual(errors.map((text) => text.replace(/:\d+\)$/, ')')), ['retry',
    none, none, none, 'Error: no (worker.test.js)', 'RangeError: the delayMs '
      + 'NaN is not a whole number of milliseconds from 0 to 9999999999999 '
      + '(check.js)']);
});

test('a run that takes too long is canceled and retried', async () => {
  const reasons = [];
  await set('t', 'timeout', '50ms', 'retry', '1ms');
  work({ t: async (job) => {
    if (job.attempt > 1) return;
    await new Promise((resolve) => {
      job.signal.addEventListener('abort', resolve);
    });
    reasons.push(job.signal.reason.message);
  } });
  await client.add('t', 1, { id: 'a' });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(reasons, ['timeout']);
  assert.equal((await client.counts('t')).done, 1);
});

test('leases are renewed while jobs run', async () => {
  let runs = 0;
  const ends = async () =>
    Number((await server.redis.zrange('weir:{t}:lease', 0, 0, 'WITHSCORES'))[1]);
  await set('t', 'lease', '6s');
  const handle = async () => {
    const firstMs = await ends();
    runs++;
    await until(async () => await ends() >= firstMs + 6000,
                'its lease would have ended');
  };
  work({ t: handle });
  work({ t: handle });
  await client.add('t', 1, { id: 'a' });
  await until(async () => runs > 0 && await isEmpty('t'), 'it is empty');
  assert.equal(runs, 1);
  assert.equal((await client.counts('t')).done, 1);
});

test('a lease is renewed while a handler holds the event loop', async () => {
  await set('t', 'lease', '1s');
  const leaseEnd = () => Number(execFileSync('redis-cli', ['-s', server.socket,
    'ZRANGE', 'weir:{t}:lease', '0', '0', 'WITHSCORES']).toString()
    .split('\n')[1]);
  let renewals = 0;
  work({ t: () => {
    for (let last = leaseEnd(), i = 0; renewals < 3 && i < 5000; i++) {
      const now = leaseEnd();
      if (now > last) renewals++;
      last = now;
    }
  } });
  await client.add('t', 1);
  await until(() => isEmpty('t'), 'it is empty');
  assert.equal(renewals, 3);
  assert.equal((await client.counts('t')).crashed, 0);
});

test('jobs in hand have the lease of the topic when that changes', async () => {
  let finish;
  const waits = new Promise((resolve) => { finish = resolve; });
  await set('t', 'lease', '30m');
  await client.add('t', 1, { id: 'a' });
  work({ t: async (job) => job.id === 'a' && await waits });
  const length = async () => {
    const [held] = await server.redis.hvalsBuffer('weir:{t}:held');
    return held?.at(-5) === 0xce ? held.readUInt32BE(held.length - 4) : 0;
  };
  await until(length, 'a is claimed');
  for (const minutes of [60, 20]) {
    await set('t', 'lease', `${minutes}m`);
    await client.add('t', 1); // with it comes the lease
    await until(async () => await length() === minutes * 60000,
                'it is renewed');
  }
  finish();
  await until(() => isEmpty('t'), 'it is empty');
  assert.equal((await client.counts('t')).done, 3);
});

test('a worker that stops finishes what runs and gives back the rest',
     async () => {
       const started = [];
       let finish;
       const waits = new Promise((resolve) => { finish = resolve; });
       const { worker, over } = work({ t: async (job) => {
         started.push(job.id);
         await waits;
       } });
       await client.add('t', 1, { id: 'a' });
       await until(() => started.length, 'it runs');
       worker.stop();
       await client.add('t', 2, { id: 'b' });
       finish();
       await over;
       assert.deepEqual(started, ['a']);
       assert.equal((await client.look('t', 'b')).state, 'ready');
       assert.equal((await client.counts('t')).done, 1);
       assert.equal(await server.redis.zcard('weir:{t}:idle'), 0);
       assert.equal(await server.redis.hlen('weir:{weir:topics}:workers'), 0);
     });

test('a worker that stops waits for a server that is slow', async () => {
  const { worker, over } = work({ t: () => {} });
  await until(() => server.redis.zscore('weir:{t}:idle', worker.name),
              'it sleeps');
  await server.redis.call('CLIENT', 'PAUSE', '800', 'WRITE');
  worker.stop();
  await over;
});

test('what a worker that stops did not begin goes back', async () => {
  for (const times of [1, 2]) {
    let begun = 0;
    await client.addMany('t', Array.from({ length: 10 }, () => ({})));
    const { worker, over } = work({ t: () => {
      begun += 1;
      for (let i = 0; i < times; i += 1) worker.stop();
    } });
    await over;
    assert.equal(begun, 1);
    const { waiting, running } = await client.counts('t');
    assert.deepEqual({ waiting, running },
                     { waiting: times === 1 ? 9 : 20 - 1, running: 0 });
  }
});

test('nothing begins behind the end of its lease', async () => {
  await set('t', 'lease', '1s');
  await client.addMany('t', Array.from({ length: 60 }, () => ({})));
  const stretches = [];
  let current;
  work({ t: { concurrency: 100, handle: () => {
    if (!current) { // until the loop goes on
      current = { first: performance.now() };
      stretches.push(current);
      setImmediate(() => { current = undefined; });
    }
    current.last = performance.now();
    while (performance.now() < current.last + 40);
  } } });
  await until(() => isEmpty('t'), 'all ran');
  assert(stretches.length > 1);
  for (const { first, last } of stretches) assert(last - first < 1500);
});

test('what does not end in time is given back', async () => {
  const reasons = [];
  const { worker, over } = work({ t: (job) => new Promise(() => {
    job.signal.addEventListener('abort', () =>
      reasons.push(job.signal.reason.message));
    worker.stop();
  }) }, { drainMs: 10 });
  await client.addMany('t', [{ id: 'a', body: 1 }, { body: 2 }]);
  await over;
  assert.deepEqual([...new Set(reasons)], ['the worker stops']);
  assert.equal((await client.look('t', 'a')).state, 'ready');
  assert.equal((await client.counts('t')).waiting, 2);
});

test('jobs of a worker that died are suspects and run one by one', async () => {
  await set('t', 'lease', '2s');
  await client.addMany('t', Array.from({ length: 20 }, (_, n) =>
    ({ id: `job-${n}`, body: n })));
  await dieWithAll(20);
  await set('t', 'lease', '1m');
  let running = 0;
  let most = 0;
  const crashes = [];
  work({ t: async (job) => {
    most = Math.max(most, ++running);
    crashes.push(job.crashes);
    await sleep(1);
    running--;
  } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(crashes, Array(20).fill(1));
  assert.equal(most, 1);
});

/** A worker that claims all and then is as if it had died. */
async function dieWithAll(count) {
  let runs = 0;
  const worker = new Worker(server.url, { t: () => {
    runs++;
    return new Promise(() => {});
  } }, { log: () => {} });
  worker.run({ signals: [] }).catch(() => {});
  await until(async () => runs > 0 &&
    (await client.counts('t')).running === count, 'all run');
  worker.server.close();
  worker.stop();
  worker.stop();
}

test('a job that crashed too often is dead', async () => {
  await set('t', 'lease', '2s', 'max_crashes', '1');
  await client.add('t', 1, { id: 'a' });
  await dieWithAll(1);
  await dieWithAll(1);
  work({ t: () => {} });
  await until(() => isEmpty('t'), 'it is empty');
  const job = await client.look('t', 'a');
  assert.equal(job.options.reason, 'crashed');
  assert.equal(job.crashes, 2);
});

test('a job that expired does not run', async () => {
  const ran = [];
  await client.addMany('t', [{ id: 'late', body: 1, ttlMs: 1 },
    { id: 'early', body: 1, ttlMs: 10000000 }]);
  await sleep(20);
  work({ t: (job) => { ran.push(job.id); } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(ran, ['early']);
  assert.equal((await client.counts('t')).expired, 1);
});

test('a job that cannot be read is dead, and its neighbors run', async () => {
  const ran = [];
  await client.addMany('t', [1, 2, 3].map((body) => ({ body })));
  const [key] = await server.redis.keys('weir:{t}:p:*');
  const pack = await server.redis.getBuffer(key);
  pack[8 + 16 + 9 + 1] = 0xc1; // the version of the second record
  await server.redis.set(key, pack);
  work({ t: (job) => { ran.push(job.body); } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(ran.sort(), [1, 3]);
  const [id] = await server.redis.zrange('weir:{t}:dead', 0, -1);
  assert.equal((await client.look('t', id)).options.reason, 'malformed');
});

test('options that JavaScript cannot have are malformed', async () => {
  const ran = [];
  const headers = { x: 'yz' };
  await client.addMany('t', [{ id: 'a', body: 1, headers },
    { id: 'b', body: 2, headers }]);
  const [key] = await server.redis.keys('weir:{t}:p:*');
  const pack = await server.redis.getBuffer(key);
  const at = pack.lastIndexOf(Buffer.from('\x81\xa1x\xa2yz', 'latin1'));
  pack.write('\x81\x91\xa1y\xa1z', at, 'latin1'); // {["y"]: "z"}
  await server.redis.set(key, pack);
  work({ t: (job) => { ran.push(job.id); } });
  await until(() => isEmpty('t'), 'it is empty');
  assert.deepEqual(ran, ['a']);
  const [id] = await server.redis.zrange('weir:{t}:dead', 0, -1);
  assert.equal(id, 'b');
});

test('IN_HAND is of all topics, and one pull may bring a suspect', async () => {
  const told = [];
  const { worker } = work({ t: () => new Promise(() => {}), u: () => {},
    v: () => {} }, { drainMs: 1 });
  const send = worker.server.script.bind(worker.server);
  worker.server.script = (name, keys, ...args) => {
    if (name === 'delay/pull') told.push([keys[0], args[2]]);
    return send(name, keys, ...args);
  };
  worker.wake();
  await until(() => told.length >= 3, 'all pull');
  assert.deepEqual(told.slice(0, 3).map(([, inHand]) => inHand), [0, 2, 2]);
  await client.add('t', 1, { id: 'a' });
  await until(() => worker.lanes.some(({ inHand }) => inHand.size), 'it runs');
  await until(() => {
    worker.wake('u');
    return told.some(([key, inHand]) => /{u}/.test(key) && inHand === 1);
  }, 'it tells the job of t');
});

test('topics that are not for it are left alone', async () => {
  let runs = 0;
  await set('d', 'on_dead', 'other');
  await server.redis.hset('weir:{s}:meta', 'kind', 'sync');
  await client.add('d', 1);
  work({ d: () => { runs++; }, s: () => { runs++; } });
  const told = await until(() => {
    const lines = log.filter((line) => /on_dead|kind/.test(line));
    return lines.length >= 2 && lines;
  }, 'it says so');
  assert.deepEqual(told.sort(), [
    'd: ERR the topic has on_dead: weir itself serves it',
    's: it is of the kind sync']);
  assert.equal(runs, 0);
});

test('a paused topic rests', async () => {
  let runs = 0;
  await server.redis.hset('weir:{t}:meta', 'kind', 'delay', 'paused', '1');
  await client.add('t', 1);
  const { worker } = work({ t: () => { runs++; } });
  await until(() => server.redis.zscore('weir:{t}:idle', worker.name),
              'it sleeps');
  await sleep(100);
  assert.equal(runs, 0);
});

test('connections that are cut come back, and no job is lost', async () => {
  const ran = new Set();
  await set('t', 'lease', '500ms');
  work({ t: async (job) => { ran.add(job.body); } });
  for (let n = 0; n < 300; n += 30) {
    await client.addMany('t', Array.from({ length: 30 }, (_, i) =>
      ({ body: n + i })));
    await until(() => ran.size > n, 'some ran');
    await server.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME',
                            'yes');
  }
  await until(() => ran.size === 300, 'all ran');
  await until(() => isEmpty('t'), 'it is empty');
});

test('it is seen among the workers', async () => {
  const { worker } = work({ t: () => {} });
  const told = await until(() => server.redis.hgetBuffer(
    'weir:{weir:topics}:workers', worker.name), 'it told');
  assert.match(told.latin1Slice(), /topics/);
});
