// SPDX-License-Identifier: MIT
// bench.js [JOBS]: adds and runs so many jobs (200,000) on a private server,
// and prints a line of JSON for each way: jobs in a second, and us of this
// process' CPU for each.

import { Client, Worker } from './index.js';
import { TestServer } from './tests/server.js';

const JOBS = Number(process.argv[2] ?? 200000);

async function measure(what, count, run) {
  const began = performance.now();
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - began) / 1000;
  console.log(JSON.stringify({ case: what, jobs: count,
    per_second: Math.round(count / seconds),
    cpu_us: Number(((user + system) / count).toFixed(2)) }));
}

const server = await new TestServer().start();
const client = new Client(server.url);
await client.add('t', null);
await measure('addMany', JOBS, async () => {
  const jobs = Array.from({ length: JOBS }, (_, n) => ({ body: { n } }));
  await client.addMany('t', jobs);
});
let left = JOBS + 1;
const worker = new Worker(server.url, { t: { concurrency: 1024,
  handle: async () => {
    if (--left === 0) worker.stop();
  } } });
await measure('run', JOBS, () => worker.run());
await measure('add', JOBS / 20, async () => {
  for (let n = 0; n < JOBS / 20; n += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) =>
      client.add('t', { n }, { id: `job-${n + i}` })));
  }
});
client.close();
await server.end();
