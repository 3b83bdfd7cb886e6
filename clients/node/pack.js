// SPDX-License-Identifier: MIT
// Before `npm pack`: copies the scripts of a build of weir, WEIR_SCRIPTS or
// build/scripts, into the package.

import { cpSync, existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SCRIPTS = ['delay/push', 'delay/add', 'delay/pull', 'delay/finish',
  'delay/renew', 'delay/slot', 'delay/stats', 'store/beat'];
const here = fileURLToPath(new URL('.', import.meta.url));
const from = process.env.WEIR_SCRIPTS ?? `${here}../../build/scripts`;

if (!existsSync(from)) {
  console.error(`pack: there is no ${from}: build weir, or set WEIR_SCRIPTS`);
  process.exit(1);
}
for (const script of SCRIPTS) {
  cpSync(`${from}/${script}.lua`, `${here}scripts/${script}.lua`);
}
