/** Records a run of the real program through all its operations: its calls on files, responses and printed output. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExportName } from '../../../src/detection/content-type.ts';
import { FORMS } from '../../../src/exports/file-name.ts';
import { formatMs, formatWindowStart } from '../../../src/time.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { TEST_SETTINGS } from '../../support/appliance.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs, type Row } from '../../support/export-files.ts';
import { filesWaiting } from '../../support/installation-state.ts';
import { type RunningProgram, runProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';
import { compileLibrary, createInjector, type Injector } from '../io/inject.ts';
import { dropRecorded, type IoEvent, note, readRecord } from '../io/record.ts';
import { Follower, type Page } from './follower.ts';

/** Also for starts on an image. The base URL is fixed, so that links to photos are the same at every start. */
export const SETTINGS = {
  ...TEST_SETTINGS,
  WIREWATCH_INGEST_QUIET_MS: '0',
  WIREWATCH_SERVER_BASE_URL: 'https://wire.example',
};

/** Folders below the root of the recorded disk. */
export const DATA = 'data';
export const BACKUP = 'backup';

/** The subscription that is removed during the run. */
export const REMOVED = 7003;

export interface Story {
  readonly events: readonly IoEvent[];
  /** The recorded folder, in its final state; it was empty before the first event. */
  readonly root: string;
  /** From {@link compileLibrary}. */
  readonly library: string;
  /** By request id. */
  readonly pages: ReadonlyMap<string, Page>;
  /** The detection ids of each good file, by file name; files dropped later are added. */
  readonly files: Map<string, readonly string[]>;
  /** The follower's key. */
  readonly key: string;
}

/** Noted after a command succeeded. */
export interface Done {
  readonly done: string;
  /** Keys that the command created or revoked. */
  readonly keys: readonly { readonly id: string; readonly status: string }[];
}

/** Three transactions of at most 20,000 rows; most rows repeat a few detections. */
const BACKFILL_ROWS = 40_010;
const BACKFILL_DETECTIONS = 60;
const TIMEOUT_MS = 60_000;
/**
 * The program is killed after these numbers of file changes: during its start, while it reads a file, while it is idle.
 */
const KILLS = [12, 45, 80, 130, 210, 320] as const;

/** @param folder for the installation, the record and the library */
export async function recordStory(folder: string, prng: Prng): Promise<Story> {
  const library = compileLibrary(folder);
  const root = join(folder, 'recorded');
  const recording = {
    library,
    record: join(folder, 'record'),
    root,
    drafts: join(folder, 'drafts'),
    injector: createInjector(library, root, join(folder, 'control')),
    prng,
  };
  mkdirSync(recording.root);
  mkdirSync(recording.drafts);
  const recorder = new Recorder(recording);
  try {
    const key = await recorder.run();
    const { files, pages } = recorder;
    return { events: readRecord(recording.record), root, library, pages, files, key };
  } finally {
    recorder.end();
  }
}

/** Starts the program on the data folder below the root, and records its calls. */
export function runRecorded(
  args: readonly string[],
  { library, record, root }: Pick<Recording, 'library' | 'record' | 'root'>,
  settings: Readonly<Record<string, string>> = {},
): RunningProgram {
  const recorded = { LD_PRELOAD: library, IO_ROOT: root, IO_RECORD: record };
  return runProgram([...args, '--data', join(root, DATA)], { ...SETTINGS, ...recorded, ...settings });
}

interface Recording {
  /** From {@link compileLibrary}. */
  readonly library: string;
  /** The path of the record. */
  readonly record: string;
  readonly root: string;
  /** The folder in which export files are written before they are dropped. */
  readonly drafts: string;
  readonly injector: Injector;
  readonly prng: Prng;
}

class Recorder {
  readonly files = new Map<string, readonly string[]>();
  readonly #recording: Recording;
  readonly #root: string;
  readonly #drop: string;
  #follower: Follower | null = null;
  readonly #seen: Record<ExportName, Row[]> = { newswire: [], imagewire: [] };
  #program: RunningProgram | null = null;
  #files = 0;

  constructor(recording: Recording) {
    this.#recording = recording;
    this.#root = recording.root;
    this.#drop = join(recording.root, DATA, 'drop');
  }

  get pages(): ReadonlyMap<string, Page> {
    return this.#follower?.pages ?? new Map();
  }

  end(): void {
    this.#follower?.stop();
    this.#program?.kill('SIGKILL');
  }

  /** @returns the key of the follower */
  async run(): Promise<string> {
    await this.#command('account', 'add', 'agency', '--name', 'Agency');
    await this.#command('subscription', 'add', '7001', '--account', 'agency');
    await this.#command('subscription', 'add', '7002', '--account', 'agency');
    const { key } = await this.#createKey('7001,7002');
    this.#follower = new Follower(key, `since=${formatMs(Date.now() - 60_000)}`);
    await this.#begin();
    await this.#windows(3);
    const [first] = await this.#changeKeys();
    await this.#backUp();
    await this.#badFiles();
    await this.#backfill();
    await this.#pause();
    await this.#command('key', 'rotate', first ?? '', '--overlap', '1h');
    await this.#command('key', 'revoke', first ?? '', '--yes');
    await this.#removal();
    await this.#command('verify');
    await this.#windows(2);
    await this.#backUp();
    await this.#end();

    for (const changes of KILLS) await this.#killed(changes);
    await this.#begin();
    await this.#windows(2);
    await this.#command('ingest', 'replay');
    await this.#end();

    await this.#command('compact');
    await this.#changeKeys();
    await this.#begin();
    await this.#windows(1);
    await this.#backUp();
    await this.#windows(1);
    await this.#end();
    // A restore brings back what the backup has: it must have what the follower was told.
    await this.#backUp();
    await this.#command('restore', join(this.#root, BACKUP), '--replace');
    await this.#begin();
    await this.#windows(2);
    await this.#end();
    return key;
  }

  async #begin(isKilled = false): Promise<RunningProgram> {
    const settings = isKilled ? this.#recording.injector.settings : {};
    const program = this.#run(['serve', '--port', '0'], settings);
    this.#program = program;
    const listening = program.url().then((url) => this.#follower?.at(url));
    if (isKilled) listening.catch(() => {});
    else await listening;
    return program;
  }

  async #end(): Promise<void> {
    this.#follower?.at(null);
    this.#program?.kill('SIGTERM');
    const code = await this.#program?.ended;
    if (code !== 0) throw new Error(`the program ended with ${code}: ${this.#program?.stderr()}`);
    this.#program = null;
  }

  /** Drops files and kills the program after a number of file changes. */
  async #killed(changes: number): Promise<void> {
    this.#write('newswire');
    this.#recording.injector.begin('changes', { how: 'kill', at: changes });
    const program = await this.#begin(true);
    let isOver = false;
    void program.ended.then(() => {
      isOver = true;
    });
    const deadline = performance.now() + TIMEOUT_MS;
    while (!isOver) {
      if (performance.now() > deadline) throw new Error(`the program made fewer than ${changes} changes`);
      await sleep(100);
      if (!isOver) this.#write(this.#recording.prng.pick(['newswire', 'imagewire']));
    }
    this.#follower?.at(null);
    if ((await program.ended) !== null) throw new Error(`the program exited: ${program.stderr()}`);
  }

  #run(args: readonly string[], settings?: Readonly<Record<string, string>>): RunningProgram {
    return runRecorded(args, this.#recording, settings);
  }

  /** Runs a command and notes its start and end in the record. @returns its output */
  async #command(...args: string[]): Promise<string> {
    const { record } = this.#recording;
    const command = args.slice(0, 2).join(' ');
    note(record, JSON.stringify({ begun: command }));
    const program = this.#run([...args, '--json']);
    const code = await program.ended;
    if (code !== 0) throw new Error(`wirewatch ${args.join(' ')} ended with ${code}: ${program.stderr()}`);
    const created: { id: string } | undefined = args[0] === 'key' ? JSON.parse(program.stdout()) : undefined;
    const status = args[1] === 'revoke' ? 'revoked' : 'active';
    const keys = created === undefined ? [] : [{ id: created.id, status }];
    note(record, JSON.stringify({ done: command, keys } satisfies Done));
    return program.stdout();
  }

  /** Creates three keys and revokes two. @returns their ids */
  async #changeKeys(): Promise<string[]> {
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { id } = await this.#createKey('7001');
      ids.push(id);
    }
    for (const id of ids.slice(1)) {
      await this.#command('key', 'revoke', id, '--yes');
    }
    return ids;
  }

  async #createKey(subscriptions: string): Promise<{ id: string; key: string }> {
    const options = ['--account', 'agency', '--subscriptions', subscriptions, '--scopes', 'detections:read'];
    return JSON.parse(await this.#command('key', 'create', '--name', 'k', ...options));
  }

  async #backUp(): Promise<void> {
    await this.#command('backup', join(this.#root, BACKUP));
  }

  /** Drops one good file of each export for each of `count` windows. */
  async #windows(count: number): Promise<void> {
    for (let window = 0; window < count; window += 1) {
      this.#write('newswire');
      this.#write('imagewire');
      await this.#settled();
    }
  }

  async #badFiles(): Promise<void> {
    const startMs = nextWindowMs();
    this.#put(fileName('newswire', startMs), Buffer.from('no JSON\n'));
    await this.#settled();
    this.#write('newswire', { startMs });
    await this.#command('window', 'reset', 'newswire', formatWindowStart(startMs));
    await this.#settled();
  }

  async #backfill(): Promise<void> {
    const rows = Array.from({ length: BACKFILL_DETECTIONS }, () =>
      newRow({ subscription_id: 7002, exported_at: '2026-11-01T00:00:00Z' }),
    );
    const all = Array.from({ length: BACKFILL_ROWS }, (_, index) => rows[index % rows.length] ?? {});
    const name = 'newswire.backfill-history.csv.zst';
    this.#put(name, contentOf('csv.zst', all));
    this.files.set(
      name,
      rows.map((row) => idOf(row)),
    );
    this.#write('newswire');
    await this.#settled();
  }

  async #pause(): Promise<void> {
    await this.#command('ingest', 'pause');
    this.#write('newswire');
    await sleep(100);
    await this.#command('ingest', 'resume');
    await this.#settled();
  }

  async #removal(): Promise<void> {
    await this.#command('subscription', 'add', `${REMOVED}`, '--account', 'agency');
    this.#write('newswire', { subscription: REMOVED });
    this.#write('imagewire', { subscription: REMOVED });
    await this.#settled();
    await this.#command('subscription', 'remove', `${REMOVED}`, '--yes');
  }

  /** Drops a file with new rows and some rescored ones. */
  #write(
    exportName: ExportName,
    { startMs = nextWindowMs(), subscription = 7001 }: { startMs?: number; subscription?: number } = {},
  ): void {
    const { prng } = this.#recording;
    const form = FORMS[this.#files % FORMS.length] ?? 'ndjson';
    const scored = { last_scored_at: formatMs(startMs), exported_at: formatMs(startMs + 1000) };
    const again = subscription === 7001 ? this.#seen[exportName].filter(() => prng.chance(0.05)) : [];
    const rows = Array.from({ length: 1 + prng.below(8) }, () =>
      newRow({ ...scored, subscription_id: subscription, strength_score: prng.below(100) }),
    );
    const all = [...rows, ...again.map((row) => ({ ...row, ...scored, strength_score: prng.below(100) }))];
    if (subscription === 7001) this.#seen[exportName].push(...rows);
    const name = fileName(exportName, startMs, form);
    this.#put(name, contentOf(form, all));
    if (subscription === 7001)
      this.files.set(
        name,
        all.map((row) => idOf(row, exportName)),
      );
  }

  #put(name: string, content: Buffer): void {
    const { drafts, record } = this.#recording;
    dropRecorded(record, { draft: join(drafts, name), path: join(this.#drop, name), content });
    this.#files += 1;
  }

  /** Waits until every file is read. */
  async #settled(): Promise<void> {
    await until('every file is read', () => filesWaiting(this.#drop).length === 0);
    // Give the program time to checkpoint its databases.
    await sleep(60);
  }
}
