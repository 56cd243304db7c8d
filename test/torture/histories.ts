/**
 * Random histories of an installation: files in any order and number, kills, clock changes, backups, restores, older
 * copies restored by hand, replays, a removal, several commands at once. Three clients follow the stream at different
 * speeds. In the end, all of them must equal the model, which is computed from the dropped rows alone, and a database
 * that is made from the log must equal the one in use.
 */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findTail } from '../../src/log/torn-end.ts';
import { DAY_MS, formatMs, HOUR_MS } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { checkMadeAnew } from '../support/database-content.ts';
import { contentOf, fileName, nextWindowMs, type Row } from '../support/export-files.ts';
import { Follower, fresh, type Get, getAs, settle } from '../support/followers.ts';
import { untilIdle } from '../support/installation-state.ts';
import { shiftedClock } from '../support/preload.ts';
import { runProgram } from '../support/program.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { copyFolder } from '../support/test-folder.ts';
import { type History, type Part, runHistories, type Tally } from './part.ts';
import { Model } from './scenario/model.ts';

const HISTORIES = 300;
const STEPS = 14;
const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_SERVER_BASE_URL: 'https://api.example' };

export const histories: Part = {
  name: 'histories',
  about: 'runs 300 random histories of files, kills, clock changes, backups, restores and commands',
  run: (options) =>
    runHistories(options, HISTORIES, (at) => new RandomHistory(`${options.seed} ${at}`, options.tally)),
};

interface Copy {
  readonly path: string;
  /** The last entry of the log at the time of the copy. */
  readonly entry: number;
}

class RandomHistory implements History {
  readonly #prng: Prng;
  readonly #tally: Tally;
  readonly #installation: Installation;
  #serving: Serving | null = null;
  readonly #model = new Model();
  readonly #dropped: { name: string; content: Buffer }[] = [];
  readonly #baseMs: number;
  #rows = 0;
  #subscriptions = [7001, 7002];
  #backups: string[] = [];
  /** Copies of detections.db, and of the whole data folder. */
  #copies: { databases: Copy[]; folders: Copy[] } = { databases: [], folders: [] };
  /** One client stays at the head, one polls rarely, one reads a few pages now and then. */
  readonly #eager = new Follower(3);
  readonly #lazy = new Follower();
  readonly #slow = new Follower(2);
  readonly #get: Get;
  readonly steps: string[] = [];

  /** All steps, by name; a step returns false if it was not possible. */
  readonly #kinds: Readonly<Record<string, () => unknown>> = {
    drop: () => this.#drop(),
    'drop several': async () => {
      for (let files = 2 + this.#prng.below(3); files > 0; files -= 1) await this.#drop(false);
      await this.#rest();
    },
    backfill: () => this.#drop(true, true),
    /** An earlier file, which changes nothing. */
    'drop again': async () => {
      if (this.#subscriptions.length === 1) return false;
      const { name, content } = this.#prng.pick(this.#dropped);
      putFile(this.#installation.drop, name, content);
      return this.#rest();
    },
    replay: () => {
      this.#installation.cli(['ingest', 'replay'], { anyStatus: true });
      return this.#rest();
    },
    'drop and kill': async () => {
      await this.#drop(false);
      await sleep(this.#prng.below(60));
      await this.#kill();
      await this.#start();
    },
    'kill while it starts': async () => {
      await this.#kill();
      for (let kills = 1 + this.#prng.below(2); kills > 0; kills -= 1) {
        const starting = this.#installation.begin();
        await sleep(100 + this.#prng.below(300));
        await starting.kill();
      }
      await this.#start();
    },
    'set the clock': async () => {
      await this.#stopOrKill();
      await this.#start(this.#prng.pick([-HOUR_MS, HOUR_MS]));
      await this.#drop();
      await this.#stop();
      await this.#start();
    },
    'back up': () => this.#backUp(),
    restore: async () => {
      if (this.#backups.length === 0) this.#backUp();
      await this.#stopOrKill();
      this.#installation.cli(['restore', this.#prng.pick(this.#backups), '--replace']);
      await this.#start();
      await this.#caughtUp();
    },
    'copy the database': () => this.#copy('databases'),
    'put the database back': () => this.#putDatabaseBack(),
    'copy the folder': () => this.#copy('folders'),
    'put the folder back': () => this.#putFolderBack(),
    /** Earlier copies and backups still hold its rows, so they are not used again. */
    'remove a subscription': async () => {
      if (this.#subscriptions.length === 1) return false;
      await this.#rest();
      this.#installation.cli(['subscription', 'remove', '7002', '--yes']);
      this.#subscriptions = [7001];
      this.#model.remove(7002);
      for (const path of this.#backups) rmSync(path, { recursive: true });
      [this.#backups, this.#copies] = [[], { databases: [], folders: [] }];
      return true;
    },
    'several commands at once': () => this.#severalCommands(),
  };

  constructor(seed: string, tally: Tally) {
    this.#prng = seededPrng(seed, 'history');
    this.#tally = tally;
    this.#baseMs = Math.floor((Date.now() - 25 * DAY_MS) / 1000) * 1000;
    this.#installation = createInstallation(SETTINGS);
    this.#get = getAs(() => this.#serving, this.#installation.key, { retries: 200 });
  }

  async run(): Promise<void> {
    await this.#start();
    await this.#drop();
    for (let step = 0; step < STEPS; step += 1) {
      const [kind, run] = this.#prng.pick(Object.entries(this.#kinds));
      this.steps.push(kind);
      if ((await run()) !== false) this.#tally.count(kind);
      await this.#followers();
    }
    await this.#rest();
    const client = await settle([this.#eager, this.#lazy, this.#slow], this.#get);
    this.#check(client);
    await this.#stop();
    const { status, stdout } = this.#installation.cli(['verify', '--json'], { anyStatus: true });
    assert.equal(status, 0, stdout);
    await checkMadeAnew(this.#installation.data, async () => {
      await this.#start();
      await this.#stop();
    });
  }

  end(): void {
    this.#installation.remove();
  }

  async #start(shiftMs = 0): Promise<void> {
    this.#serving = await this.#installation.serve(shiftMs === 0 ? {} : shiftedClock(shiftMs));
    await this.#rest();
  }

  async #stop(): Promise<void> {
    await this.#serving?.stop();
    this.#serving = null;
  }

  async #kill(): Promise<void> {
    await this.#serving?.kill();
    this.#serving = null;
  }

  #stopOrKill(): Promise<void> {
    return this.#prng.chance(0.5) ? this.#stop() : this.#kill();
  }

  async #rest(): Promise<void> {
    if (this.#serving !== null) await untilIdle(this.#installation);
  }

  /** A file with recurring detections and a new one, so that every file changes something. */
  async #drop(isAwaited = true, isBackfill = false): Promise<void> {
    const startMs = nextWindowMs();
    const rows = Array.from({ length: 1 + this.#prng.below(8) }, () => this.#row(1 + this.#prng.below(6)));
    rows.push(this.#row(1000 + this.#rows));
    const form = this.#prng.pick(['ndjson', 'ndjson.gz', 'csv.zst'] as const);
    const name = isBackfill ? `newswire.backfill-${this.#rows}.${form}` : fileName('newswire', startMs, form);
    const file = { name, content: contentOf(form, rows) };
    this.#dropped.push(file);
    putFile(this.#installation.drop, file.name, file.content);
    if (isAwaited) await this.#rest();
  }

  #row(article: number): Row {
    this.#rows += 1;
    const row = {
      subscription_id: this.#prng.pick(this.#subscriptions),
      source_internal_id: 1 + this.#prng.below(2),
      article_id: article,
      first_detected_at: formatMs(this.#baseMs - this.#prng.below(1000) * 1000),
      // Unordered and unique.
      last_scored_at: formatMs(this.#baseMs + ((this.#rows * 7919) % 50_000) * 1000),
      strength_score: this.#prng.below(99),
    };
    this.#model.apply('newswire', [row]);
    return row;
  }

  #backUp(): void {
    const path = this.#beside(this.#prng.chance(0.5) ? 'backup' : `backup-${this.#rows}`);
    const { status, stderr } = this.#installation.cli(['backup', path], { anyStatus: true });
    if (status !== 0) {
      // It is of a state that a restore has discarded since.
      assert.match(stderr, /is left as it is/);
      rmSync(path, { recursive: true });
      this.#installation.cli(['backup', path]);
    }
    if (!this.#backups.includes(path)) this.#backups.push(path);
  }

  async #copy(what: 'databases' | 'folders'): Promise<void> {
    await this.#stop();
    const copy = this.#beside(`${what}-${this.#copies[what].length}`);
    const { data } = this.#installation;
    // One from before a removal may have that name.
    rmSync(copy, { recursive: true, force: true });
    copyFolder(what === 'folders' ? data : join(data, 'detections.db'), copy);
    this.#copies[what].push({ path: copy, entry: this.#lastEntry() });
    await this.#start();
  }

  /** Sometimes the newer database's -wal file stays beside it. */
  async #putDatabaseBack(): Promise<void> {
    if (this.#copies.databases.length === 0) await this.#copy('databases');
    await this.#stopOrKill();
    // A start refuses a database that is ahead of the log.
    const copies = this.#copies.databases.filter((copy) => copy.entry <= this.#lastEntry());
    const copy = copies.length === 0 ? null : this.#prng.pick(copies);
    if (copy === null) return this.#start();
    const path = join(this.#installation.data, 'detections.db');
    if (this.#prng.chance(0.5)) for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    cpSync(copy.path, path);
    await this.#start();
  }

  /** The archive stays, as if on another disk. A client ahead of the log proves that the log's end is lost. */
  async #putFolderBack(): Promise<void> {
    if (this.#copies.folders.length === 0) await this.#copy('folders');
    await this.#rest();
    await this.#eager.follow(this.#get);
    await this.#stop();
    const { data } = this.#installation;
    const archive = this.#beside('archive');
    rmSync(archive, { recursive: true, force: true });
    copyFolder(join(data, 'drop', 'archive'), archive);
    rmSync(data, { recursive: true });
    copyFolder(this.#prng.pick(this.#copies.folders).path, data);
    copyFolder(archive, join(data, 'drop', 'archive'));
    await this.#start();
    await this.#caughtUp();
    const log = this.#serving?.log ?? [];
    const alerts = log.filter(({ alert }) => alert === 'end of log lost').length;
    assert.ok(alerts <= 1, 'one alert for one lost end');
    this.#tally.count('end of log lost', alerts);
  }

  /** Polls until every detection of the model is served again. */
  async #caughtUp(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      await this.#eager.follow(this.#get);
      await this.#rest();
      const client = await fresh(this.#get);
      if ([...this.#model.newest.keys()].every((id) => client.copy.has(id))) return;
      assert.ok(tries < 200, 'the files of the lost entries were not read again');
      await sleep(50);
    }
  }

  /** Runs commands while a file is read. Each must succeed or be refused. */
  async #severalCommands(): Promise<void> {
    await this.#drop(false);
    const commands = [
      ['backup', this.#beside('several')],
      ['backup', this.#beside('several')],
      ['account', 'set', 'agency', '--daily-rows', '1000000'],
      ['window', 'list', 'newswire'],
      ['verify'],
    ];
    const data = ['--data', this.#installation.data];
    const codes = await Promise.all(commands.map((args) => runProgram([...args, ...data]).ended));
    const others = codes.filter((code) => code !== 0 && code !== 1);
    assert.deepEqual(others, [], `exit codes ${codes}`);
    await this.#rest();
  }

  async #followers(): Promise<void> {
    await this.#eager.follow(this.#get);
    if (this.#prng.chance(0.2)) await this.#lazy.follow(this.#get);
    if (this.#prng.chance(0.5)) await this.#slow.follow(this.#get, 1 + this.#prng.below(3));
  }

  #check({ copy }: Follower): void {
    const { newest } = this.#model;
    assert.deepEqual([...copy.keys()].sort(), [...newest.keys()].sort());
    for (const [id, { row, first }] of newest) {
      const shown = copy.get(id);
      assert.deepEqual([shown?.strength.score, shown?.first_detected_at], [row.strength_score, first], id);
    }
  }

  #lastEntry(): number {
    return findTail(join(this.#installation.data, 'log')).last?.entry ?? 0;
  }

  #beside(name: string): string {
    return join(this.#installation.data, '..', name);
  }
}
