/** Functions of Node's modules, most of node:fs, that do something else in this process, such as fail as on a bad disk. */
import assert from 'node:assert/strict';
import fs, { fstatSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Puts another function in the place of one of node:fs. @param make gets the real one; @returns ends it when disposed */
export function patched<Name extends keyof typeof fs>(
  name: Name,
  make: (real: (typeof fs)[Name]) => (typeof fs)[Name],
): Disposable {
  const call: Call = make(fs[name]) as Call;
  return patchedAll(fs, [name], (_, args) => call(...args));
}

type Call = (...args: unknown[]) => unknown;

/**
 * Puts something around functions of a module, or methods of a class.
 *
 * @param module its default export, or the prototype
 * @param around runs instead of each: gets the real one, the arguments and the name
 * @returns ends it when disposed
 */
export function patchedAll(
  module: object,
  names: readonly string[],
  around: (call: Call, args: unknown[], name: string) => unknown,
): Disposable {
  const reals = names.map((name) => {
    const real: unknown = Reflect.get(module, name);
    if (typeof real !== 'function') throw new Error(`there is no function ${name}`);
    Reflect.set(module, name, function (this: unknown, ...args: unknown[]) {
      return around((...own) => Reflect.apply(real, this, own), args, name);
    });
    return [name, real] as const;
  });
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      for (const [name, real] of reals) Reflect.set(module, name, real);
      syncBuiltinESMExports();
    },
  };
}

/** An error of the system, as Node throws it. */
export const systemError = (code: string, syscall: string) =>
  Object.assign(new Error(`${code}: it fails, ${syscall}`), { code, syscall });

/**
 * Makes reads of a file fail, as on a failing disk.
 *
 * @param times how many reads fail before they succeed again; Infinity: all of them
 * @throws AssertionError if fewer reads were made; errors of `work`
 */
export async function withFailingReads<Result>(
  path: string,
  times: number,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const { ino } = statSync(path);
  let left = times;
  using _ = patched('readSync', (read) => (file: number, ...rest: [NodeJS.ArrayBufferView]) => {
    if (left === 0 || fstatSync(file).ino !== ino) return read(file, ...rest);
    left -= 1;
    throw systemError('EIO', 'read');
  });
  const result = await work();
  assert.ok(left === 0 || times === Number.POSITIVE_INFINITY, `${left} fewer reads than expected`);
  return result;
}
