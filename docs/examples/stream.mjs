#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A child of exec with mode=stream, window=16 and cancel=yes: many jobs at once,
// verdicts in whatever order; a run that took too long is told so.

import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

const running = new Map();

async function handle(job, signal) {
    await setTimeout(job.body.ms, null, { signal });
}

function answer(run, verdict, reason) {
    running.delete(run);
    console.log(JSON.stringify({ run, verdict, reason }));
}

for await (const line of createInterface({ input: process.stdin })) {
    const { run, cancel, ...job } = JSON.parse(line);
    if (cancel) {
        running.get(cancel)?.abort();
        continue;
    }
    running.set(run, new AbortController());
    handle(job, running.get(run).signal).then(
        () => answer(run, "done"),
        (fault) => answer(run, "retry", fault.message));
}
