// SPDX-License-Identifier: MIT
// A redis-server of the test's own.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const GIVE_UP_MS = 600000; // of the wall: also on a busy machine

/** Waits until `condition` returns, or resolves to, something true. */
export async function until(condition, what) {
  const end = performance.now() + GIVE_UP_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`it never came: ${what}`);
    await sleep(10);
  }
}

export class TestServer {
  constructor() {
    this.folder = mkdtempSync(path.join(tmpdir(), 'weir-node-'));
    this.socket = path.join(this.folder, 'redis.sock');
    this.url = `unix://${this.socket}`;
  }

  async start(...flags) {
    this.process = spawn('redis-server', ['--port', '0', '--unixsocket',
      this.socket, '--dir', this.folder, '--save', '', ...flags],
    { stdio: 'ignore' });
    this.redis = new Redis({ path: this.socket, maxRetriesPerRequest: null,
      retryStrategy: () => 20 });
    this.redis.on('error', () => {});
    await this.redis.ping();
    return this;
  }

  kill() {
    const ended = new Promise((resolve) => this.process.on('exit', resolve));
    this.process.kill('SIGKILL');
    return ended;
  }

  async end() {
    this.redis.disconnect();
    await this.kill();
    rmSync(this.folder, { recursive: true });
  }
}
