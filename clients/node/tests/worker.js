// SPDX-License-Identifier: MIT
// worker.js SOCKET FILE CONCURRENCY WORK_MS RETRY_EVERY: serves the topic t and
// writes down what it runs as the plugin of the ledger does.

import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fail, Retry, Worker } from '../index.js';

const [socket, file, concurrency, workMs, retryEvery] = process.argv.slice(2);
let runs = 0, record;

function note(what, job, detail) {
  writeSync(record, `${what} ${job.id} ${job.token} ${detail} ${Date.now()}\n`);
}

async function handle(job) {
  const number = ++runs;
  note('S', job, job.attempt);
  await sleep(Number(workMs));
  if (job.signal.aborted) return undefined; // it is somebody else's
  const verdict = job.body?.fail ? 'fail'
    : Number(retryEvery) && number % retryEvery === 0 ? 'retry' : 'done';
  note('E', job, verdict);
  if (verdict === 'fail') throw new Fail('told to fail');
  if (verdict === 'retry') throw new Retry('told to');
  return undefined;
}

const worker = new Worker(`unix://${socket}`,
  { t: { handle, concurrency: Number(concurrency) } });
const end = worker.run();
record = openSync(file, 'a'); // it hears signals from here on
await end;
