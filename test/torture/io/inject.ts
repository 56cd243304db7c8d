/** Counts a program's calls on files, and kills the program at one of them or makes it fail (preload.h). */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'preload.c');

/** The offsets of `struct control`'s members. */
const AT = { at: 8, how: 16, error: 20, classes: 24, pid: 28, midway: 32, name: 36, what: 68 };
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
  // In place: a process that runs has it mapped.
  const write = (bytes: Buffer, at = 0) => {
    const file = openSync(control, 'r+');
    writeSync(file, bytes, 0, bytes.length, at);
    closeSync(file);
  };
  return {
    /** Environment variables for the program. */
    settings: { LD_PRELOAD: library, IO_ROOT: root, IO_CONTROL: control },
    /** Starts counting at 0. @param injection null: only count */
    begin(counted: Counted, injection: Injection | null, isTraced = false): void {
      if (isTraced) writeFileSync(trace, '');
      else rmSync(trace, { force: true });
      const bytes = Buffer.alloc(CONTROL_BYTES);
      bytes.writeUInt32LE(counted === 'changes' ? 1 : 3, AT.classes);
      if (injection !== null) {
        bytes.writeUInt32LE(injection.at, AT.at);
        bytes.writeUInt32LE(HOW[injection.how], AT.how);
        if (injection.how === 'fail') bytes.writeUInt32LE(constants.errno[injection.error], AT.error);
        bytes.write(injection.name ?? '', AT.name);
      }
      write(bytes);
    },
    /** Stops counting and injecting. */
    end(): void {
      write(Buffer.alloc(8), AT.at);
      write(Buffer.alloc(4), AT.classes);
    },
    hit(): Hit | null {
      const bytes = readFileSync(control);
      if (bytes.readUInt32LE(AT.pid) === 0) return null;
      const what = bytes.toString('utf8', AT.what, bytes.indexOf(0, AT.what));
      return { what, isMidway: bytes.readUInt32LE(AT.midway) === 1 };
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
