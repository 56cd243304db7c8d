/** Counts a program's calls on files, and kills the program at one of them or makes it fail (preload.h). */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'preload.c');

/** The offsets of `struct control`'s members. */
const AT = { count: 0, at: 8, how: 16, error: 20, classes: 24, pid: 28, midway: 32 };
const NAME_AT = 36;
const WHAT_AT = 68;
const CONTROL_BYTES = 512;
const HOW = { kill: 1, 'kill midway': 2, fail: 3 } as const;

export type Counted = 'changes' | 'changes and reads';
export const ERROR_NAMES = ['EIO', 'ENOSPC', 'EBUSY', 'ESTALE'] as const;
export type ErrorName = (typeof ERROR_NAMES)[number];

/**
 * Hits the first call with this name (or any call) whose number is at least `at`: the order of calls differs from run
 * to run. `kill midway` kills after half of a write.
 */
export type Injection = { readonly at: number; readonly name?: string } & (
  | { readonly how: 'kill' | 'kill midway' }
  | { readonly how: 'fail'; readonly error: ErrorName }
);

/** A counted call. */
export interface Call {
  readonly number: number;
  /** The name of the system call; `create` or `open` for the two uses of open. */
  readonly name: string;
  /** The path, below the watched folder. */
  readonly path: string;
}

/** The call that was killed or failed. */
export interface Hit {
  readonly pid: number;
  /** Name and path. */
  readonly what: string;
  readonly isMidway: boolean;
}

export type Injector = ReturnType<typeof createInjector>;

/** Compiles the library that a program preloads; needs gcc. @returns its path */
export function compileLibrary(folder: string): string {
  const library = join(folder, 'preload.so');
  const flags = ['-O2', '-Wall', '-Werror', '-shared', '-fPIC'];
  execFileSync('gcc', [...flags, '-o', library, SOURCE, '-ldl', '-lpthread']);
  return library;
}

/**
 * @param library from {@link compileLibrary}
 * @param root only calls on files below this folder are counted
 * @param control the path of the control file, outside of the root
 */
export function createInjector(library: string, root: string, control: string) {
  writeFileSync(control, Buffer.alloc(CONTROL_BYTES));
  const trace = `${control}.trace`;

  function set(values: Partial<Record<keyof typeof AT, number>>, callName?: string): void {
    const file = openSync(control, 'r+');
    try {
      if (callName !== undefined) writeSync(file, `${callName}\0`, NAME_AT);
      for (const [name, at] of Object.entries(AT)) {
        const value = Object(values)[name];
        if (typeof value !== 'number') continue;
        const bytes = Buffer.alloc(name === 'count' || name === 'at' ? 8 : 4);
        bytes.writeUInt32LE(value);
        writeSync(file, bytes, 0, bytes.length, at);
      }
    } finally {
      closeSync(file);
    }
  }

  function read(): Buffer {
    const bytes = Buffer.alloc(CONTROL_BYTES);
    const file = openSync(control, 'r');
    try {
      readSync(file, bytes, 0, CONTROL_BYTES, 0);
    } finally {
      closeSync(file);
    }
    return bytes;
  }

  return {
    /** Environment variables for the program. */
    settings: { LD_PRELOAD: library, IO_ROOT: root, IO_CONTROL: control },
    /** Starts counting at 0. @param injection null: only count */
    begin(counted: Counted, injection: Injection | null, isTraced = false): void {
      if (isTraced) writeFileSync(trace, '');
      else rmSync(trace, { force: true });
      set({ classes: 0, count: 0, pid: 0, midway: 0 });
      set(
        {
          at: injection?.at ?? 0,
          how: injection === null ? 0 : HOW[injection.how],
          error: injection?.how === 'fail' ? constants.errno[injection.error] : 0,
        },
        injection?.name ?? '',
      );
      set({ classes: counted === 'changes' ? 1 : 3 });
    },
    /** Stops counting and injecting. */
    end: () => set({ classes: 0, at: 0 }),
    hit(): Hit | null {
      const bytes = read();
      const pid = bytes.readUInt32LE(AT.pid);
      if (pid === 0) return null;
      const what = bytes.subarray(WHAT_AT, bytes.indexOf(0, WHAT_AT)).toString();
      return { pid, what, isMidway: bytes.readUInt32LE(AT.midway) === 1 };
    },
    /** All calls since the last begin() with `isTraced`. */
    trace: (): Call[] =>
      readFileSync(trace, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const [number = '', name = '', path = ''] = line.split('\t');
          return { number: Number(number), name, path };
        })
        .sort((one, other) => one.number - other.number),
  };
}
