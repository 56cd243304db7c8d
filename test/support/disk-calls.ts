/**
 * Records the calls with which the program's own code changes what must be durable, none of which is a stream's, and
 * determines what a power cut would lose at any point: unsynced content, and names in folders that were not synced
 * since. SQLite's own calls are not recorded.
 */
import fs, { lstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { patchedAll } from './patched-fs.ts';
import { words } from './words.ts';

/** Paths are absolute. */
export type DiskCall =
  | { readonly call: 'create' | 'write' | 'sync' | 'remove'; readonly path: string }
  | { readonly call: 'rename' | 'link'; readonly path: string; readonly to: string };

const WRITES = words('writeSync ftruncateSync truncateSync writeFileSync');

/** Patches `node:fs` in this thread, until disposed. @param onCall runs before each call takes effect */
export function recordDiskCalls(onCall: (call: DiskCall) => void): Disposable {
  const files = new Map<unknown, string>();
  const at = (path: unknown) => {
    if (typeof path === 'number') return files.get(path) ?? `descriptor ${path}`;
    const [, folder, name = ''] = /^\/proc\/self\/fd\/(\d+)(.*)/.exec(String(path)) ?? [];
    return resolve(folder === undefined ? String(path) : files.get(Number(folder)) + name);
  };
  const patches = new DisposableStack();
  const patch = (names: readonly string[], around: Parameters<typeof patchedAll>[2]) =>
    patches.use(patchedAll(fs, names, around));
  const before = (names: readonly string[], note: (...args: unknown[]) => void) =>
    patch(names, (call, args) => {
      note(...args);
      return call(...args);
    });
  const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const created = (path: string) => {
    if (!isThere(path)) onCall({ call: 'create', path });
  };
  patch(['openSync'], (call, args) => {
    const path = at(args[0]);
    const flags = String(args[1] ?? 'r');
    const isOld = isThere(path);
    if (/[wa]/.test(flags)) created(path);
    if (isOld && flags.includes('w') && !flags.includes('x')) onCall({ call: 'write', path });
    const file = call(...args);
    files.set(file, path);
    return file;
  });
  before(['closeSync'], (file) => files.delete(file));
  before(WRITES, (file) => {
    if (typeof file !== 'number') created(at(file));
    onCall({ call: 'write', path: at(file) });
  });
  before(['fsyncSync', 'fdatasyncSync'], (file) => onCall({ call: 'sync', path: at(file) }));
  before(['mkdirSync'], (path) => created(at(path)));
  before(['rmSync', 'unlinkSync'], (path) => {
    if (isThere(at(path))) onCall({ call: 'remove', path: at(path) });
  });
  for (const kind of ['rename', 'link'] as const)
    patch([`${kind}Sync`], (call, args) => {
      const result = call(...args);
      onCall({ call: kind, path: at(args[0]), to: at(args[1]) });
      return result;
    });
  return patches;
}

export async function diskCallsOf(work: () => unknown): Promise<DiskCall[]> {
  const calls: DiskCall[] = [];
  using _ = recordDiskCalls((call) => calls.push(call));
  await work();
  return calls;
}

/** Records the calls of a program that is not an executable (NO_PRELOAD). @param folder for the record */
export function programCalls(folder: string) {
  const file = join(folder, 'calls');
  return {
    /** The settings that the program must run with. */
    settings: { NODE_OPTIONS: `--import=${import.meta.url}`, WIREWATCH_TEST_CALLS: file },
    calls: (): DiskCall[] =>
      readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
  };
}

/** What a power cut would lose now. */
export class Unsynced {
  /** Files with unsynced content. */
  readonly content = new Set<string>();
  /** Unsynced names of files and folders that were created, renamed or linked. */
  readonly names = new Set<string>();
  /** Names that a rename removed, and that a power cut could restore. */
  readonly removed = new Set<string>();
  /** Files that got their name before their content was synced: a power cut could leave them empty. */
  readonly tooEarly: string[] = [];

  constructor(calls: Iterable<DiskCall> = []) {
    for (const call of calls) this.note(call);
  }

  note(call: DiskCall): void {
    const { path } = call;
    if ('to' in call) this.#name(call);
    else if (call.call === 'create') this.names.add(path);
    else if (call.call === 'write') this.content.add(path);
    else if (call.call === 'remove') this.#forget(path);
    else {
      this.content.delete(path);
      for (const set of [this.names, this.removed])
        for (const name of [...set]) if (dirname(name) === path) set.delete(name);
    }
  }

  #name({ call, path, to }: Extract<DiskCall, { to: string }>): void {
    if (this.content.has(path)) this.tooEarly.push(to);
    // The rename replaced an earlier file of this name.
    if (call === 'rename') this.content.delete(to);
    const isWithin = (each: string) => each === path || each.startsWith(`${path}/`);
    for (const set of [this.content, this.names])
      for (const each of [...set].filter(isWithin)) {
        if (call === 'rename') set.delete(each);
        set.add(to + each.slice(path.length));
      }
    this.names.add(to);
    this.removed.delete(to);
    if (call === 'rename') this.removed.add(path);
  }

  #forget(path: string): void {
    for (const set of [this.content, this.names, this.removed])
      for (const each of [...set]) if (each === path || each.startsWith(`${path}/`)) set.delete(each);
  }
}

/** Preloaded into the program, this appends each call to a file. */
const record = process.env.WIREWATCH_TEST_CALLS;
if (record !== undefined) {
  const [file, write] = [openSync(record, 'a'), writeSync];
  recordDiskCalls((call) => write(file, `${JSON.stringify(call)}\n`));
}
