// SPDX-License-Identifier: MIT
export { Client } from './lib/client.js';
export { Worker } from './lib/worker.js';
export { Fail, Job, Retry, Snooze } from './lib/job.js';
export { WeirError } from './lib/server.js';
