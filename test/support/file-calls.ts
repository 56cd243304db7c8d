/** The calls by which a program makes names in folders durable, in their order: for one that is not packed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const HOOK = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { appendFileSync, fsyncSync, mkdirSync, readlinkSync, renameSync } = fs;
  const note = (...call) => appendFileSync(process.env.WIREWATCH_TEST_CALLS, call.join(' ') + '\\n');
  fs.fsyncSync = (file) => {
    note('fsync', readlinkSync('/proc/self/fd/' + file));
    return fsyncSync(file);
  };
  fs.mkdirSync = (path, ...rest) => {
    note('mkdir', path);
    return mkdirSync(path, ...rest);
  };
  fs.renameSync = (from, to) => {
    note('rename', from, to);
    return renameSync(from, to);
  };
  syncBuiltinESMExports();
`;

/** Settings with which the program runs, and what it did: `fsync PATH`, `mkdir PATH`, `rename FROM TO`. */
export function fileCalls(folder: string) {
  const file = join(folder, 'calls');
  return {
    settings: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(HOOK)}`,
      WIREWATCH_TEST_CALLS: file,
    },
    calls: () => readFileSync(file, 'utf8').trimEnd().split('\n'),
  };
}
