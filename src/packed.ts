/**
 * What differs between the three ways the program runs: from the sources, bundled (dist/main.cjs beside
 * node_modules), and packed into the one executable.
 *
 * In the executable there is no folder to read from: its files are taken from the executable itself.
 */
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { getAsset, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

declare const WIREWATCH_BUNDLED: boolean | undefined;

const bundled = typeof WIREWATCH_BUNDLED === 'boolean';

/** Whether this is the executable, on any of its threads. */
export const isPacked: boolean = isSea();

/**
 * Bounds the young objects of each thread: nearly all of them are short-lived rows. V8's own bound is 64 MiB, and the
 * main thread's heap grew towards it: to 87 MB, of which 16 were in use.
 */
const SEMI_SPACE_MIB = 8;
/** V8 counts two semi-spaces, and one more for large objects. */
const YOUNG_MIB = 3 * SEMI_SPACE_MIB;

/**
 * How the executable runs its Node. Without the first, `kill -USR1` opens a debugger port. Without the second, OpenSSL
 * loads the libraries that a configuration names: that of OPENSSL_CONF, or one in the folder it was built with.
 */
export const NODE_FLAGS: readonly string[] = [
  '--disable-sigusr1',
  '--openssl-config=/dev/null',
  `--max-semi-space-size=${SEMI_SPACE_MIB}`,
];

/** Starts src/worker.ts on a new thread. @param workerData its role */
export function startWorker(workerData: unknown): Worker {
  const options: WorkerOptions = { workerData, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB } };
  if (isPacked) {
    // The last line names the script in stack traces, instead of "[worker eval1]".
    const script = `${getAsset('worker.cjs', 'utf8')}\n//# sourceURL=worker.cjs`;
    return new Worker(script, { ...options, eval: true });
  }
  if (bundled) return new Worker(fileURLToPath(new URL('main.cjs', import.meta.url)), options);
  return new Worker(new URL('worker.ts', import.meta.url), options);
}

/** The command that runs this program, without further arguments. */
export const ownCommand = (): readonly [string, ...string[]] =>
  isPacked ? [process.execPath] : [process.execPath, resolve(process.argv[1] ?? '')];

/** The addon's bytes, without a copy; only in the executable. */
export const packedAddon = (): Uint8Array => new Uint8Array(getRawAsset('better_sqlite3.node'));

/** The parts of the program, itself first, each with its licence; null from the sources. */
export const licenses = (): readonly Record<'name' | 'version' | 'license' | 'text', string>[] | null =>
  bundled ? JSON.parse(besideProgram('licenses.json')) : null;

/** The files of the console, text by name. From the sources, those of the last bundling. */
export const consoleFiles = (): Readonly<Record<string, string>> =>
  JSON.parse(besideProgram(bundled ? 'console.json' : '../dist/console.json'));

/** Those of the bundle, by folder, once one was asked for: most commands start without them. */
const texts: Partial<Record<string, Readonly<Record<string, string>>>> = {};

/** A file of the manual, or a sample file. */
export function packedText(folder: 'src/manual' | 'config', name: string): string {
  if (!bundled) return readFileSync(new URL(`../${folder}/${name}`, import.meta.url), 'utf8');
  texts[folder] ??= JSON.parse(besideProgram(`${basename(folder)}.json`));
  const text = texts[folder]?.[name];
  if (text === undefined) throw new Error(`there is no ${folder}/${name}`);
  return text;
}

/** A file that was made with the program. */
const besideProgram = (name: string): string =>
  isPacked ? getAsset(name, 'utf8') : readFileSync(new URL(name, import.meta.url), 'utf8');
