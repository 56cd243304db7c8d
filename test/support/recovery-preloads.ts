/** Code that tests of recovery preload into the program; not into an executable (NO_PRELOAD). */

/** Delays reading each frame of the log by WIREWATCH_TEST_SLOW_MS, in every thread. */
const SLOWLY = `
  import zlib from 'node:zlib';
  import { syncBuiltinESMExports } from 'node:module';
  const { zstdDecompressSync } = zlib;
  zlib.zstdDecompressSync = (...args) => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env.WIREWATCH_TEST_SLOW_MS));
    return zstdDecompressSync(...args);
  };
  syncBuiltinESMExports();
`;
export const SLOW = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SLOWLY)}` };

/** Fails every write to a copy of a segment with ENOSPC while the file that WIREWATCH_TEST_FULL names exists. */
const FULL = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { writeSync, existsSync, readlinkSync } = fs;
  fs.writeSync = (file, ...args) => {
    if (existsSync(process.env.WIREWATCH_TEST_FULL) && readlinkSync('/proc/self/fd/' + file).endsWith('.zst.tmp'))
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
    return writeSync(file, ...args);
  };
  syncBuiltinESMExports();
`;

export const NO_ROOM = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FULL)}` };

/** Refuses a new detections.db its name while the file that WIREWATCH_TEST_FULL names exists, as a full disk does. */
const NAMELESS = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { linkSync, existsSync } = fs;
  fs.linkSync = (from, to) => {
    if (existsSync(process.env.WIREWATCH_TEST_FULL) && String(to).endsWith('detections.db'))
      throw Object.assign(new Error('ENOSPC: no space left on device, link'), { code: 'ENOSPC', syscall: 'link' });
    return linkSync(from, to);
  };
  syncBuiltinESMExports();
`;
export const NO_ROOM_FOR_DATABASE = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(NAMELESS)}`,
};
