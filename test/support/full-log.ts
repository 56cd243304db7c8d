/** Simulates a full disk for the log only, in all threads of the program; not for an executable. */
import { rmSync, writeFileSync } from 'node:fs';

/** Fails every write to a log segment while the file named by WIREWATCH_TEST_FULL exists. */
const FULL = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { writeSync, existsSync, readlinkSync } = fs;
  fs.writeSync = (file, ...args) => {
    if (existsSync(process.env.WIREWATCH_TEST_FULL) && /\\/log\\/\\d+\\.zst$/.test(readlinkSync('/proc/self/fd/' + file)))
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
    return writeSync(file, ...args);
  };
  syncBuiltinESMExports();
`;

/** The program's settings, and functions that fill the disk and free it. @param flag a path on any disk */
export function fullLog(flag: string) {
  return {
    settings: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FULL)}`,
      WIREWATCH_TEST_FULL: flag,
    },
    fill: () => writeFileSync(flag, ''),
    makeRoom: () => rmSync(flag),
  };
}
