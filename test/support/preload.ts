/** Code that is loaded into the program before it starts, in all of its threads; not into an executable (NO_PRELOAD). */
import { rmSync, writeFileSync } from 'node:fs';

/** @param source of an ES module; @returns settings of the program */
export function preloaded(source: string): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}` };
}

/** Delays reading each frame of the log. */
export const slowLog = (ms: number) =>
  preloaded(`
    import zlib from 'node:zlib';
    import { syncBuiltinESMExports } from 'node:module';
    const { zstdDecompressSync } = zlib;
    zlib.zstdDecompressSync = (...args) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms});
      return zstdDecompressSync(...args);
    };
    syncBuiltinESMExports();
  `);

export interface FailingCall {
  /** Settings of the program. */
  readonly settings: { readonly NODE_OPTIONS: string };
  /** From now on the call fails. */
  begin(): void;
  end(): void;
}

/**
 * A call on files fails for some of them, as on a full disk or a network share.
 *
 * @param code of the error; @param path of a file that is written, removed, renamed, or given its name by a link
 * @param flag the call fails as long as this file exists
 */
export function failingCall(
  call: 'write' | 'link' | 'rename' | 'unlink',
  code: string,
  path: RegExp,
  flag: string,
): FailingCall {
  const settings = preloaded(`
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const { ${call}Sync, existsSync, readlinkSync } = fs;
    const pathOf = (file) => typeof file === 'number' ? readlinkSync('/proc/self/fd/' + file) : String(file);
    fs.${call}Sync = (...args) => {
      if (existsSync(${JSON.stringify(flag)}) && ${path}.test(pathOf(args[${call === 'link' ? 1 : 0}])))
        throw Object.assign(new Error('${code}: planted, ${call}'), { code: '${code}', syscall: '${call}' });
      return ${call}Sync(...args);
    };
    syncBuiltinESMExports();
  `);
  return { settings, begin: () => writeFileSync(flag, ''), end: () => rmSync(flag) };
}
