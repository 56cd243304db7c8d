/** Counts a program's calls on files, and kills it at one of them or lets it fail (preload.h). */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'preload.c');

/** As `struct control` has them. */
const AT = { count: 0, at: 8, how: 16, error: 20, classes: 24, pid: 28, midway: 32 };
const NAME_AT = 36;
const WHAT_AT = 68;
const CONTROL_BYTES = 512;
const HOW = { kill: 1, 'kill midway': 2, fail: 3 } as const;

export type Counted = 'changes' | 'changes and reads';
export const ERROR_NAMES = ['EIO', 'ENOSPC', 'EBUSY', 'ESTALE'] as const;
export type ErrorName = (typeof ERROR_NAMES)[number];

/**
 * Hits the first call of a name, or any without one, from a number on: no two runs make all calls in the same order.
 * Midway: half of a write is done first.
 */
export type Injection = { readonly at: number; readonly name?: string } & (
  | { readonly how: 'kill' | 'kill midway' }
  | { readonly how: 'fail'; readonly error: ErrorName }
);

/** A call as it was counted. */
export interface Call {
  readonly number: number;
  /** The system's name for it; `create` and `open` for the two uses of that one. */
  readonly name: string;
  /** Below the folder that is watched. */
  readonly path: string;
}

/** What was hit. */
export interface Hit {
  readonly pid: number;
  /** Name and path. */
  readonly what: string;
  readonly isMidway: boolean;
}

export interface Injector {
  /** What the program's environment needs. */
  readonly settings: Readonly<Record<string, string>>;
  /** Counts from 0. @param injection null: nothing is hit */
  begin(counted: Counted, injection: Injection | null, isTraced?: boolean): void;
  /** Counts and hits nothing any more. */
  end(): void;
  calls(): number;
  hit(): Hit | null;
  /** Since the last begin(), where it was traced. */
  trace(): Call[];
}

/** @returns the path of the library that a program preloads; this takes gcc, and a second */
export function compileLibrary(folder: string): string {
  const library = join(folder, 'preload.so');
  const flags = ['-O2', '-Wall', '-Werror', '-shared', '-fPIC'];
  execFileSync('gcc', [...flags, '-o', library, SOURCE, '-ldl', '-lpthread']);
  return library;
}

/**
 * @param library of {@link compileLibrary}
 * @param root only calls that concern files below this folder count
 * @param control a file of its own, outside of the root
 */
export function createInjector(library: string, root: string, control: string): Injector {
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
    settings: { LD_PRELOAD: library, IO_ROOT: root, IO_CONTROL: control },
    begin(counted, injection, isTraced = false) {
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
    end: () => set({ classes: 0, at: 0 }),
    calls: () => read().readUInt32LE(AT.count),
    hit() {
      const bytes = read();
      const pid = bytes.readUInt32LE(AT.pid);
      if (pid === 0) return null;
      const what = bytes.subarray(WHAT_AT, bytes.indexOf(0, WHAT_AT)).toString();
      return { pid, what, isMidway: bytes.readUInt32LE(AT.midway) === 1 };
    },
    trace: () =>
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
