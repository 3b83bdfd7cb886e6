// SPDX-License-Identifier: MIT
// A process that adds 200 jobs and sends its parent their ids.

import { Client } from '../index.js';

const client = new Client(process.argv[2]);
const adds = Array.from({ length: 200 }, (_, n) => client.add('t', n));
const added = await Promise.all(adds);
client.close();
process.send(added.map(({ id }) => id), () => process.disconnect());
