/** Makes reads of a file fail in this process, as on a failing disk. */
import assert from 'node:assert/strict';
import fs, { fstatSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/**
 * @param times how many reads fail before they succeed again; Infinity: all of them
 * @throws AssertionError if fewer reads were made; errors of `work`
 */
export async function withFailingReads<Result>(
  path: string,
  times: number,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const { readSync } = fs;
  const { ino } = statSync(path);
  let left = times;
  const failing: typeof readSync = (file, ...rest: [NodeJS.ArrayBufferView]) => {
    if (left === 0 || fstatSync(file).ino !== ino) return readSync(file, ...rest);
    left -= 1;
    throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
  };
  fs.readSync = failing;
  syncBuiltinESMExports();
  try {
    const result = await work();
    assert.ok(left === 0 || times === Number.POSITIVE_INFINITY, `${left} fewer reads than expected`);
    return result;
  } finally {
    fs.readSync = readSync;
    syncBuiltinESMExports();
  }
}
