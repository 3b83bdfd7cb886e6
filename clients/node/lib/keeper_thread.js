// SPDX-License-Identifier: MIT
// Renews leases of lanes whose event loop is silent, for no longer than a run
// may take; keeper.js starts it.

import { workerData } from 'node:worker_threads';
import { FIRST } from './keeper.js';
import { Server } from './server.js';

const UNKNOWN_MS = 3000; // a lease, before the first claim
const { address, prefix, told } = workerData;
const server = new Server(address, { prefix, log: () => {}, repeatMs: 500 });
const lanes = told.map((lane) =>
  ({ ...lane, beats: -1, heardAt: 0, renewals: 0, keptAt: 0 }));

function keep(lane) {
  const [beats, leaseMs, timeoutMs, count, renewals] = lane.shared;
  const now = performance.now();
  if (beats !== lane.beats) Object.assign(lane, { beats, heardAt: now });
  if (renewals !== lane.renewals) {
    Object.assign(lane, { renewals, keptAt: now });
  }
  if (count === 0 || now < lane.keptAt + leaseMs / 2 ||
      now > lane.heardAt + leaseMs + timeoutMs) return;
  lane.keptAt = now;
  server.script('delay/renew', lane.keys, leaseMs,
                ...lane.shared.slice(FIRST, FIRST + count)).catch(() => {});
}

function turn() {
  lanes.forEach(keep);
  const leases = lanes.map(({ shared }) => shared[1] || UNKNOWN_MS);
  setTimeout(turn, Math.min(...leases) / 6);
}

turn();
