/** A disk that is full for the log alone, without a disk of its own: for the threads of a program that is not packed. */
import { rmSync, writeFileSync } from 'node:fs';

/** Lets no write to a segment of the log succeed while the file that WIREWATCH_TEST_FULL names is there. */
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

/** Settings with which the program runs, and the switch. @param flag a path on any disk */
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
