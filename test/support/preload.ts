/** Code that is loaded into the program before it starts, in all of its threads; not into an executable (NO_PRELOAD). */
import { openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Functions of Node's modules are others, in all of the program.
 *
 * @param source of an ES module, which has `fs` and changes what it has to; @returns settings of the program
 */
export function preloadedFs(source: string) {
  const from = "import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';";
  return preloaded(`${from}${source}; syncBuiltinESMExports();`);
}

/** @param source of an ES module; @returns settings of the program */
export function preloaded(source: string): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}` };
}

const SHIFTED_CLOCK = join(import.meta.dirname, 'shifted-clock.cjs');

/** @returns settings of a program whose clock is wrong by so much */
export function shiftedClock(ms: number) {
  return { NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`, TEST_CLOCK_SHIFT_MS: String(ms) };
}

/** A clock that only a test moves forward, beside the time that passes: of all programs that get its settings. @param file for it */
export function movingClock(file: string, beginMs: number) {
  const open = openSync(file, 'w');
  const shiftMs = new BigInt64Array(1);
  const moveTo = (ms: number) => {
    shiftMs[0] = BigInt(ms - Date.now());
    writeSync(open, shiftMs, 0, shiftMs.byteLength, 0);
  };
  moveTo(beginMs);
  return { settings: { NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`, TEST_CLOCK_FILE: file }, moveTo };
}

/** For preloaded code: the path of a descriptor, or of a name in a folder that is open. */
export const PATH_OF = `((file) => {
  const { readlinkSync } = process.getBuiltinModule('node:fs');
  return (typeof file === 'number' ? '/proc/self/fd/' + file : String(file))
    .replace(/^\\/proc\\/self\\/fd\\/\\d+/, (open) => readlinkSync(open));
})`;

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
) {
  const settings = preloadedFs(`
    const { ${call}Sync, existsSync } = fs;
    fs.${call}Sync = (...args) => {
      if (existsSync(${JSON.stringify(flag)}) && ${path}.test(${PATH_OF}(args[${call === 'link' ? 1 : 0}])))
        throw Object.assign(new Error('${code}: planted, ${call}'), { code: '${code}', syscall: '${call}' });
      return ${call}Sync(...args);
    };
  `);
  return {
    /** Of the program. */
    settings,
    /** From now on the call fails. */
    begin: () => writeFileSync(flag, ''),
    end: () => rmSync(flag),
  };
}
