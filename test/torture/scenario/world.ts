/** An installation in a folder, its running appliance, and a client that follows the change stream. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readLogMarkOf } from '../../../src/store/log-mark.ts';
import { HOUR_MS } from '../../../src/time.ts';
import { type Detection, putFile, TEST_SETTINGS } from '../../support/appliance.ts';
import { isIdle, loggedDestinations } from '../../support/installation-state.ts';
import { follow as readAll } from '../../support/lab.ts';
import { type LogLine, type RunningProgram, type RunOptions, runProgram } from '../../support/program.ts';
import { copyFolder, filesBelow } from '../../support/test-folder.ts';
import type { Injector } from '../io/inject.ts';
import { dropRecorded, note } from '../io/record.ts';
import type { Command, Drop, Keys, Role, Stage, Step } from './stages.ts';

/** Also for starts on an image of a disk: links to photos are the same at every start. */
export const SETTINGS = {
  ...TEST_SETTINGS,
  WIREWATCH_SERVER_BASE_URL: 'https://api.example',
  WIREWATCH_INGEST_QUIET_MS: '0',
};
/** Folders below that of an installation. */
export const DATA = 'data';
export const BACKUP = 'backup';
/** What the machines of a copy have in common: its place, and the drop folder of whichever writes. */
const PLACE = 'place';
const STANDBY_DATA = 'standby';
/** Much longer than any step takes. */
const TIMEOUT_MS = 300_000;
const CHECK_EVERY_MS = 10;
/** How often a step is tried, if the fault hit it. */
const TRIES_MAX = 4;

/** Everything that the client has received. */
export type Copy = Readonly<{ cursor: string | null; rows: readonly Detection[] }>;

/** The state between two stages. */
export type Snapshot = ReturnType<World['save']>;

interface StageOptions {
  /** Told before the steps, and before the stop. */
  readonly onPart?: (part: 'steps' | 'stop') => void;
  /** Whether the appliance of the stage, if it has one, is not stopped. */
  readonly isLeftRunning?: boolean;
}

/** Noted in the record after a command succeeded. */
export interface Done {
  readonly done: string;
  /** Keys that the command created or revoked. */
  readonly keys: readonly { readonly id: string; readonly status: string }[];
}

export class World {
  readonly root: string;
  readonly drop: string;
  readonly backup: string;
  readonly place: string;
  /** Of the machine that runs. */
  role: Role = 'alone';
  readonly #injector: Injector;
  readonly #main: string;
  /** Of the installation's changes, and of what clients and operators are told. */
  readonly #record: string | null;
  readonly #since = new Date(Date.now() - HOUR_MS).toISOString();
  keys: Record<string, string> = {};
  copy: Copy = { cursor: null, rows: [] };
  /** How a fault ended the program: `the appliance, run: killed`, `command verify: 1 …`. */
  readonly events: string[] = [];
  /** The log lines of every run of the appliance. */
  readonly logs: (() => readonly LogLine[])[] = [];
  #stageSettings: Readonly<Record<string, string>> = {};
  #server: { readonly run: RunningProgram; readonly url: string } | null = null;

  /** @param main the program's entry; @param folder of the injector */
  constructor(main: string, folder: string, injector: Injector, record: string | null = null) {
    this.#main = main;
    this.#record = record;
    this.#injector = injector;
    this.root = folder;
    this.drop = join(folder, DATA, 'drop');
    this.backup = join(folder, BACKUP);
    this.place = join(folder, PLACE);
  }

  /** The data folder of the machine that runs. */
  get data(): string {
    return join(this.root, this.role === 'standby' || this.role === 'successor' ? STANDBY_DATA : DATA);
  }

  get #copySettings(): Readonly<Record<string, string>> {
    if (this.role === 'alone') return {};
    const isSecond = this.data.endsWith(STANDBY_DATA);
    return {
      WIREWATCH_COPY_TO: this.place,
      WIREWATCH_COPY_WAIT: 'true',
      WIREWATCH_INGEST_DROP: this.drop,
      ...(isSecond && { WIREWATCH_COPY_STANDBY: 'true' }),
    };
  }

  /** Of the appliance; null: it does not run. */
  get url(): string | null {
    return this.#server?.url ?? null;
  }

  save(folder: string) {
    copyFolder(this.root, folder);
    const keys: Keys = { ...this.keys };
    return { folder, keys, copy: this.copy, role: this.role };
  }

  /** @param snapshot null: nothing is installed */
  load(snapshot: Snapshot | null): void {
    rmSync(this.root, { recursive: true, force: true });
    mkdirSync(this.root);
    this.events.length = 0;
    this.logs.length = 0;
    this.keys = { ...snapshot?.keys };
    this.role = snapshot?.role ?? 'alone';
    this.copy = snapshot?.copy ?? { cursor: null, rows: [] };
    if (snapshot !== null) copyFolder(snapshot.folder, this.root);
  }

  /** Runs a stage from start to stop; steps that the fault interrupts are repeated. */
  async runStage(stage: Stage, { onPart, isLeftRunning = false }: StageOptions = {}): Promise<void> {
    this.#stageSettings = stage.settings ?? {};
    const { role } = this;
    this.role = stage.role ?? 'alone';
    for (const name of stage.without ?? []) rmSync(join(this.data, name));
    if (stage.serves) await this.start();
    onPart?.('steps');
    for (const step of stage.steps) await this.#runStep(step);
    onPart?.('stop');
    if (stage.serves && !isLeftRunning) await this.stop();
    this.#stageSettings = {};
    // A standby is looked at by itself; what is served is compared on the writer.
    if (this.role === 'standby') this.role = role;
  }

  #runStep(step: Step): Promise<void> {
    switch (step.kind) {
      case 'drop':
        return this.#put(step);
      case 'command':
        return this.#command(step);
      case 'expire':
        return this.until('old files are deleted', () => this.#isExpired());
      case 'follow':
        return this.until('the standby to have the rows of the writer', () => this.#hasFollowed());
    }
  }

  async start(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const run = this.#run(['serve', '--port', '0'], this.#stageSettings);
      this.logs.push(run.log);
      const url = await run.url().catch(() => null);
      if (url !== null) {
        this.#server = { run, url };
        return;
      }
      this.#ended('start', await run.ended, run);
      const isHit = this.#injector.hit() !== null;
      assert.ok(tries < TRIES_MAX && isHit, `the appliance does not start: ${run.stderr()}`);
    }
  }

  /** Starts the appliance, unless it runs; waits for the end of one that the fault has killed just now. */
  async ensureRunning(): Promise<void> {
    if (this.#server === null) return this.start();
    const isKnown = () => this.#injector.hit() === null || this.events.length > 0;
    await this.until('the end of what was killed', isKnown);
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    void server.run.stop();
    await this.until('the appliance to stop', () => server.run.exitCode() !== undefined);
    const code = server.run.exitCode() ?? null;
    if (code !== 0) this.#ended('stop', code, server.run);
  }

  /** Kills the appliance if it runs. */
  async end(): Promise<void> {
    await this.#server?.run.kill();
    this.#server = null;
  }

  async get(path: string, key = this.keys.reader): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${this.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
    return { status: answer.status, text: await answer.text() };
  }

  /** Reads the stream from the client's cursor on. */
  async follow(): Promise<void> {
    this.copy = await this.read(this.copy);
  }

  /** @returns the copy of a new client */
  fresh(): Promise<Copy> {
    return this.read({ cursor: null, rows: [] });
  }

  async read({ cursor, rows }: Copy): Promise<Copy> {
    const read = (path: string) => this.#page(path);
    const start = cursor === null ? `since=${this.#since}` : `cursor=${cursor}`;
    const more = await readAll({ read }, start);
    return { cursor: more.cursor, rows: [...rows, ...more.rows] };
  }

  async #page(path: string) {
    for (const untilMs = performance.now() + TIMEOUT_MS; ; await sleep(50)) {
      const { status, text } = await this.get(path);
      if (status === 200) return JSON.parse(text);
      const why = `the stream cannot be read: ${status} ${text}${this.#shown()}`;
      assert.ok((status === 500 || status === 503) && performance.now() < untilMs, why);
      // A page that finds damage stops ingest; every page is then refused until the database is rebuilt.
      await this.#revive();
    }
  }

  /** Whether the archive is empty and no record names a file in it: a full disk delays the records. */
  #isExpired(): boolean {
    if (filesBelow(join(this.drop, 'archive')).length > 0) return false;
    return !loggedDestinations(this.data).some((path) => path.startsWith('archive/'));
  }

  #hasFollowed(): boolean {
    const markOf = (name: string) => readLogMarkOf(join(this.root, name, 'detections.db'));
    const [one, other] = [markOf(DATA), markOf(STANDBY_DATA)];
    // A writer that stopped while its last entry waited for the copy applies it at its next start.
    return one?.entry !== undefined && other?.entry !== undefined && other.entry >= one.entry;
  }

  /** Waits until the condition holds; restarts the appliance if the fault ended it. */
  async until(what: string, condition: () => boolean): Promise<void> {
    for (const untilMs = performance.now() + TIMEOUT_MS; !condition(); await sleep(CHECK_EVERY_MS)) {
      assert.ok(performance.now() < untilMs, `${what}: not within ${TIMEOUT_MS} ms${this.#shown()}`);
      await this.#revive();
    }
  }

  async command(args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const run = this.#run(args.map((arg) => ({ BACKUP: this.backup, PLACE: this.place })[arg] ?? arg));
    try {
      await this.until(args.join(' '), () => run.exitCode() !== undefined);
    } finally {
      void run.kill();
    }
    return { code: run.exitCode() ?? null, stdout: run.stdout(), stderr: run.stderr() };
  }

  async #put({ name, content, waits }: Drop): Promise<void> {
    if (this.#record === null) putFile(this.drop, name, content);
    else dropRecorded(this.#record, join(this.drop, name), content);
    if (waits === true) return;
    await this.until(`${name} to be processed`, () => isIdle(this));
    await this.follow().catch((error) => {
      // A refused connection is tried again later; a wrong response is an error.
      if (!(error instanceof TypeError)) throw error;
    });
  }

  async #command({ args, printsKey, ifRepeated }: Command): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const commandArgs = args(this.keys);
      const name = commandArgs.slice(0, 2).join(' ');
      this.#note({ begun: name });
      const { code, stdout, stderr } = await this.command(commandArgs);
      if (code === 0) {
        const keys = name === 'key revoke' ? [{ id: commandArgs[2] ?? '', status: 'revoked' }] : [];
        if (printsKey !== undefined) {
          const made: { id: string; key: string } = JSON.parse(stdout);
          this.keys[printsKey] = made.key;
          keys.push({ id: made.id, status: 'active' });
        }
        return this.#note({ done: name, keys });
      }
      if (tries > 1 && ifRepeated?.test(stderr)) return;
      const why = code === null ? 'killed' : `${code} ${stderr.trim() || stdout.trim()}`;
      this.events.push(`command ${name}: ${why}`);
      const isHit = this.#injector.hit() !== null;
      assert.ok(tries < TRIES_MAX && isHit, this.events.at(-1));
      if (/Restart Wirewatch/.test(stderr + stdout)) await this.#restart();
    }
  }

  #note(what: { begun: string } | Done): void {
    if (this.#record !== null) note(this.#record, JSON.stringify(what));
  }

  /** Restarts the appliance, as a command that finds damage advises: the start rebuilds the database. */
  async #restart(): Promise<void> {
    if (this.#server === null) return;
    await this.stop();
    await this.start();
    const damaged = join(this.data, 'detections.db-damage');
    await this.until('the database to be rebuilt', () => !existsSync(damaged));
  }

  /** Restarts the appliance if it exited, or if its log says that only a restart helps. */
  async #revive(): Promise<void> {
    const run = this.#server?.run;
    if (run === undefined) return;
    const code = run.exitCode();
    if (code !== undefined) {
      this.#ended('run', code, run);
      return this.start();
    }
    const stopped = run.log().find(needsRestart);
    if (stopped === undefined) return;
    this.events.push(`the appliance: ${JSON.stringify(stopped.msg)} ${JSON.stringify(stopped.err)}`);
    await this.stop();
    await this.start();
  }

  #ended(when: 'start' | 'run' | 'stop', code: number | null, run: RunningProgram): void {
    const last = run.stderr().trim().split('\n').slice(-2).join(' | ');
    this.events.push(`the appliance, ${when}: ${code === null ? 'killed' : `exit code ${code} ${last}`}`);
  }

  #shown(): string {
    return `. Its log:\n${this.#server?.run.stderr().split('\n').slice(-30).join('\n') ?? 'it is not running'}`;
  }

  #run(args: readonly string[], settings: Readonly<Record<string, string>> = {}): RunningProgram {
    const all = {
      ...{ ...SETTINGS, ...this.#copySettings, ...settings, ...this.#injector.settings },
      ...(this.#record !== null && { IO_RECORD: this.#record }),
    };
    const through: RunOptions['through'] = (program, [, ...rest]) => [program, [this.#main, ...rest]];
    return runProgram([...args, '--data', this.data], all, { through });
  }
}

/** Log lines after which the program continues only after a restart, or after an hour. */
const needsRestart = ({ msg, alert }: LogLine): boolean =>
  /^(ingest stopped|cannot delete an old file)/.test(String(msg)) || alert === 'database damaged';
