/**
 * Random histories of a few machines: rows, restores of earlier states in every way, folders copied back, wrong clocks,
 * and clients that read a few pages in between. All clients end with what a new one has.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { restore } from '../../src/copy/restore.ts';
import { streamName } from '../../src/detection/content-type.ts';
import { type LostEnd, lostEnd as noticeLostEnd } from '../../src/ingest/apply/lost-end.ts';
import { StreamWriter } from '../../src/ingest/apply/stream-writer.ts';
import { compactStopped } from '../../src/log/compact.ts';
import { type Recovered, recoverDetections } from '../../src/log/recover.ts';
import type { StreamPosition } from '../../src/log/version-epoch.ts';
import { readPageFrom } from '../../src/query/changes-page.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { openAccess } from '../support/access.ts';
import type { Detection } from '../support/appliance.ts';
import { copyTo, sourceAt } from '../support/copy-at.ts';
import { checkMadeAnew } from '../support/database-content.ts';
import { batchOf, QUIETLY } from '../support/history.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { changesQuery } from '../support/streams.ts';
import { copyFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const SEED = 1;
const RUNS = 40;
const STEPS = 20;
const DETECTIONS = 8;
const STREAMS = [streamName(7001, 'text')];
/** Of a saved data folder. */
const copyOf = (path: string) => `${path}-copy`;
/** Throws an error again, unless its message says this. */
const unless = (said: string) => (error: Error) => {
  if (!error.message.includes(said)) throw error;
};
/** Long before any of the clocks: a restore with a clock that is slow takes what was detected later for new. */
const SEEN = { first_detected_at: '2020-01-01T00:00:00Z' };

const KINDS = words(`
  ingest ingest ingest poll poll poll poll make-up save save new replace until copy-back go-back clock rebuild
  new-log`);
/** What goes back to a saved data folder, or its copy. */
const OF_SAVED = words('new replace until copy-back');

interface Saved {
  readonly path: string;
  readonly atMs: number;
}

class Client {
  readonly copy = new Map<string, Detection>();
  readonly #limit: number;
  at: StreamPosition = { position: 0, epoch: 0 };

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns whether it reached the end */
  readPage(world: World): boolean {
    const db = world.db;
    const start = { kind: 'after', position: this.at.position } as const;
    const query = changesQuery({ streams: STREAMS, start, limit: this.#limit });
    const page = readPageFrom(db, query, this.at.epoch, (cursor) => world.lostEnd.note(cursor));
    const rows: Detection[] = page.rows === 0 ? [] : JSON.parse(`[${page.data}]`);
    for (const row of rows)
      if (row.version > (this.copy.get(row.id)?.version ?? 0)) this.copy.set(row.id, row);
    this.at = { position: page.position, epoch: page.epoch };
    return !page.has_more;
  }

  follow(world: World): void {
    while (!this.readPage(world));
  }
}

class World {
  readonly root = mkdtempSync(join(tmpdir(), 'wirewatch-random-'));
  readonly #prng: Prng;
  readonly said: string[] = [];
  readonly clients = [1, 2, 3, 100].map((limit) => new Client(limit));
  epochs = 0;
  #trueMs = Date.UTC(2026, 10, 20);
  #shiftMs = 0;
  #scored = 0;
  #machines: string[] = [];
  #saved: Saved[] = [];
  #current = '';
  #open: { recovered: Recovered; writer: StreamWriter; lostEnd: LostEnd } | null = null;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  get db() {
    return this.#running.recovered.db;
  }

  get lostEnd(): LostEnd {
    return this.#running.lostEnd;
  }

  get #running() {
    if (this.#open === null) throw new Error('it does not run');
    return this.#open;
  }

  readonly #now = () => {
    this.#trueMs += 7;
    return this.#trueMs + this.#shiftMs;
  };

  async begin(): Promise<void> {
    this.#current = this.#newMachine();
    const access = openAccess(this.#current, { create: true });
    // A restore removes the rows of subscriptions that are gone.
    addAccount(access, { id: 'agency', name: 'Agency' }, 0);
    addSubscription(access, { id: 7001, account_id: 'agency' }, 0);
    access.close();
    writeFileSync(join(this.#current, 'secret'), randomBytes(32), { mode: 0o600 });
    await this.#start();
  }

  end(): void {
    if (this.#open !== null) this.#stop();
    rmSync(this.root, { recursive: true, force: true });
  }

  #newMachine(): string {
    const path = join(this.root, `machine-${this.#machines.length}`);
    this.#machines.push(path);
    return path;
  }

  async #start(): Promise<void> {
    const folder = dataFolder(this.#current);
    const recovered = await recoverDetections({ folder, ...QUIETLY });
    const { db, log } = recovered;
    const writer = new StreamWriter({ db, log, folder: folder.log, now: this.#now, onDelivered: () => {} });
    const lostEnd = noticeLostEnd({
      writer,
      now: this.#now,
      log: () => {
        this.epochs += 1;
      },
      setCondition: () => {},
      onNoted: () => {},
    });
    this.#open = { recovered, writer, lostEnd };
  }

  #stop(): void {
    const { recovered, writer } = this.#running;
    if (this.#prng.chance(0.5)) writer.flush();
    recovered.log.close();
    recovered.db.close();
    this.#open = null;
  }

  ingest(articles: readonly number[]): void {
    const { writer } = this.#running;
    const applier = writer.begin();
    this.#scored += 1;
    const last_scored_at = formatMs(Date.UTC(2026, 9, 1) + this.#scored * SECOND_MS);
    applier.apply(
      batchOf(
        articles.map((article_id) => ({
          content_type: 'text',
          row: { ...SEEN, article_id, last_scored_at, strength_score: this.#scored % 97 },
        })),
      ),
    );
    writer.commit(applier, { kind: 'test' });
  }

  async step(): Promise<void> {
    const prng = this.#prng;
    // Less than the 31 days that are announced again where it is not known what a client has missed.
    this.#trueMs += prng.pick([10, SECOND_MS, HOUR_MS, DAY_MS]);
    const kind = prng.pick(KINDS);
    const saved = this.#saved.length === 0 ? null : prng.pick(this.#saved);
    const client = prng.pick(this.clients);
    this.said.push(`${kind}, ${saved?.path}, client ${this.clients.indexOf(client)}, ${this.#current}`);
    if (kind === 'ingest') {
      const all = Array.from({ length: DETECTIONS }, (_, index) => index + 1);
      const articles = all.filter(() => prng.chance(0.4));
      if (articles.length > 0) this.ingest(articles);
    } else if (kind === 'poll') {
      const pages = prng.pick([1, 1, 2, 100]);
      for (let page = 0; page < pages && !client.readPage(this); page += 1);
    } else if (kind === 'make-up') this.lostEnd.makeUp();
    else if (kind === 'clock') this.#shiftMs = prng.pick([0, 0, -HOUR_MS, HOUR_MS, -365 * DAY_MS]);
    else if (saved !== null || !OF_SAVED.includes(kind)) {
      this.#stop();
      await (saved !== null && OF_SAVED.includes(kind)
        ? this.#goBackTo(saved, kind)
        : this.#whileStopped(kind));
      await this.#start();
      if (kind === 'go-back' || kind === 'copy-back') this.#beFound();
    }
  }

  async #whileStopped(kind: string): Promise<void> {
    const current = this.#current;
    if (kind === 'save') {
      const path = join(this.root, `saved-${this.#saved.length}`);
      copyFolder(current, path);
      await copyTo(copyOf(path), current);
      this.#saved.push({ path, atMs: this.#now() });
    } else if (kind === 'go-back') this.#current = this.#prng.pick(this.#machines);
    else if (kind === 'new-log')
      await compactStopped({ folder: dataFolder(current), nowMs: this.#now(), ...QUIETLY }).catch(
        unless('still empty'),
      );
    else
      await checkMadeAnew(current, async () => {
        await this.#start();
        this.#stop();
      });
  }

  async #goBackTo({ path }: Saved, kind: string): Promise<void> {
    if (kind === 'new') this.#current = this.#newMachine();
    if (kind === 'copy-back') {
      rmSync(this.#current, { recursive: true });
      return copyFolder(path, this.#current);
    }
    const earlier = this.#prng.pick(this.#saved).atMs;
    await restore({
      source: await sourceAt(copyOf(path)),
      data: this.#current,
      replace: kind !== 'new',
      untilMs: kind === 'until' ? earlier : null,
      drop: join(this.root, 'drop'),
      now: this.#now,
      onProgress: () => {},
    }).catch(unless('contains nothing from before'));
  }

  /**
   * Two copies of one folder that both went on, without a version epoch between, look like one: only clients that come
   * before anything else is read show it.
   */
  #beFound(): void {
    for (const client of this.clients) client.readPage(this);
    this.lostEnd.makeUp();
  }

  /** Until all have what a new client has. */
  settle(isExact: boolean): void {
    for (let round = 0; ; round += 1) {
      for (const client of this.clients) client.follow(this);
      this.lostEnd.makeUp();
      const fresh = new Client(100);
      fresh.follow(this);
      const faults = this.clients.flatMap((client, index) =>
        [...fresh.copy.values()].flatMap((row) => {
          const own = client.copy.get(row.id);
          const isWrong =
            own === undefined ||
            own.last_scored_at < row.last_scored_at ||
            (isExact && own.last_scored_at !== row.last_scored_at);
          return isWrong
            ? [
                `client ${index}: ${row.id} ${own?.version} ${own?.last_scored_at} instead of ${row.version} ${row.last_scored_at}`,
              ]
            : [];
        }),
      );
      if (faults.length === 0 && round > 1) return;
      assert.ok(round < 12, [...this.said, ...faults].join('\n'));
    }
  }
}

test('clients keep the newest of everything', async () => {
  const failures: string[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const world = new World(seededPrng(SEED, 'restores', run));
    await world.begin();
    try {
      if (run % 8 > 0) world.ingest([1, 2, 3, 4, 5]);
      for (let step = 0; step < STEPS; step += 1) await world.step();
      world.settle(false);
      const begun = world.epochs;
      world.settle(false);
      assert.equal(world.epochs, begun, [...world.said, 'epochs begin again and again'].join('\n'));
      world.ingest(Array.from({ length: DETECTIONS }, (_, index) => index + 1));
      world.settle(true);
      assert.equal(world.epochs, begun);
      assert.ok(Number.isSafeInteger(Math.max(...world.clients.map(({ at }) => at.position))));
    } catch (error) {
      failures.push(`run ${run}: ${(error as Error).stack}\n${world.said.join('\n')}`);
    } finally {
      world.end();
    }
  }
  assert.deepEqual(failures, []);
});
