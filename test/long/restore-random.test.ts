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
import { streamName } from '../../src/detection/content-type.ts';
import { lostEnd as noticeLostEnd } from '../../src/ingest/apply/lost-end.ts';
import { type StreamWriter, streamWriter } from '../../src/ingest/apply/stream-writer.ts';
import { compactStopped } from '../../src/log/compact.ts';
import { type Recovered, recoverDetections } from '../../src/log/recover.ts';
import { readPageFrom } from '../../src/query/changes-page.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { openAccess } from '../support/access.ts';
import type { ChangesPage } from '../support/appliance.ts';
import { copyTo, restoreFrom } from '../support/copy-at.ts';
import { checkMadeAnew } from '../support/database-content.ts';
import { Follower, settle } from '../support/followers.ts';
import { batchOf, QUIETLY } from '../support/history.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { after, changesQuery } from '../support/streams.ts';
import { copyFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';
import { type History, runHistories, Tally } from '../torture/part.ts';

const SEED = 1;
const RUNS = 40;
const STEPS = 20;
const ARTICLES = [1, 2, 3, 4, 5, 6, 7, 8];
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

type Saved = Readonly<{ path: string; atMs: number }>;

class World implements History {
  readonly root = mkdtempSync(join(tmpdir(), 'wirewatch-random-'));
  readonly #number: number;
  readonly #prng: Prng;
  readonly steps: string[] = [];
  readonly #clients = [1, 2, 3, 100].map((limit) => new Follower(limit));
  #epochs = 0;
  #trueMs = Date.UTC(2026, 10, 20);
  #shiftMs = 0;
  #scored = 0;
  #machines: string[] = [];
  #saved: Saved[] = [];
  #current = '';
  #open: { recovered: Recovered; writer: StreamWriter; lostEnd: ReturnType<typeof noticeLostEnd> } | null =
    null;

  constructor(number: number) {
    this.#number = number;
    this.#prng = seededPrng(SEED, 'restores', number);
  }

  get #running() {
    if (this.#open === null) throw new Error('it does not run');
    return this.#open;
  }

  readonly #now = () => {
    this.#trueMs += 7;
    return this.#trueMs + this.#shiftMs;
  };

  /** Begins at the start of the log instead of a time. A cursor is a position and an epoch. */
  readonly #get = async (path: string): Promise<ChangesPage> => {
    const { recovered, lostEnd } = this.#running;
    const given = new URLSearchParams(path.split('?')[1]);
    const [position = 0, epoch = 0] = (given.get('cursor') ?? '0.0').split('.').map(Number);
    const limit = Number(given.get('limit'));
    const query = changesQuery({ streams: STREAMS, start: after(position, epoch), limit });
    const page = readPageFrom(recovered.db, query, (cursor) => lostEnd.note(cursor));
    assert.ok(Number.isSafeInteger(page.position));
    const data = page.rows === 0 ? [] : JSON.parse(`[${page.data}]`);
    return { data, next_cursor: `${page.position}.${page.epoch}`, has_more: page.has_more, as_of: null };
  };

  async run(): Promise<void> {
    await this.#begin();
    if (this.#number % 8 > 0) this.#ingest([1, 2, 3, 4, 5]);
    for (let step = 0; step < STEPS; step += 1) await this.#step();
    await this.#settle();
    const begun = this.#epochs;
    await this.#settle();
    assert.equal(this.#epochs, begun, 'epochs begin again and again');
    this.#ingest(ARTICLES);
    await this.#settle();
    assert.equal(this.#epochs, begun);
  }

  async #begin(): Promise<void> {
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
    const writer = streamWriter({ db, log, folder: folder.log, now: this.#now, onDelivered: () => {} });
    const lostEnd = noticeLostEnd({
      writer,
      now: this.#now,
      log: () => {
        this.#epochs += 1;
      },
      setCondition: () => {},
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

  #ingest(articles: readonly number[]): void {
    const { writer } = this.#running;
    const applier = writer.begin();
    this.#scored += 1;
    const last_scored_at = formatMs(Date.UTC(2026, 9, 1) + this.#scored * SECOND_MS);
    const scored = { ...SEEN, last_scored_at, strength_score: this.#scored % 97 };
    const rowOf = (article_id: number) => ({ content_type: 'text', row: { ...scored, article_id } }) as const;
    applier.apply(batchOf(articles.map(rowOf)));
    writer.commit(applier, { kind: 'test' });
  }

  async #step(): Promise<void> {
    const prng = this.#prng;
    // Less than the 31 days that are announced again where it is not known what a client has missed.
    this.#trueMs += prng.pick([10, SECOND_MS, HOUR_MS, DAY_MS]);
    const kind = prng.pick(KINDS);
    const saved = this.#saved.length === 0 ? null : prng.pick(this.#saved);
    const client = prng.pick(this.#clients);
    this.steps.push(`${kind}, ${saved?.path}, client ${this.#clients.indexOf(client)}, ${this.#current}`);
    if (kind === 'ingest') {
      const articles = ARTICLES.filter(() => prng.chance(0.4));
      if (articles.length > 0) this.#ingest(articles);
    } else if (kind === 'poll') await client.follow(this.#get, prng.pick([1, 1, 2, 100]));
    else if (kind === 'make-up') this.#running.lostEnd.makeUp();
    else if (kind === 'clock') this.#shiftMs = prng.pick([0, 0, -HOUR_MS, HOUR_MS, -365 * DAY_MS]);
    else if (saved !== null || !OF_SAVED.includes(kind)) {
      this.#stop();
      await (saved !== null && OF_SAVED.includes(kind)
        ? this.#goBackTo(saved, kind)
        : this.#whileStopped(kind));
      await this.#start();
      if (kind === 'go-back' || kind === 'copy-back') await this.#beFound();
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
    await restoreFrom(copyOf(path), this.#current, {
      replace: kind !== 'new',
      untilMs: kind === 'until' ? earlier : null,
      now: this.#now,
    }).catch(unless('contains nothing from before'));
  }

  /**
   * Two copies of one folder that both went on, without a version epoch between, look like one: only clients that come
   * before anything else is read show it.
   */
  async #beFound(): Promise<void> {
    for (const client of this.#clients) await client.follow(this.#get, 1);
    this.#running.lostEnd.makeUp();
  }

  #settle(): Promise<Follower> {
    return settle(this.#clients, async (path) => {
      const page = await this.#get(path);
      this.#running.lostEnd.makeUp();
      return page;
    });
  }
}

test('clients keep the newest of everything', async (context) => {
  const onProgress = (said: string) => context.diagnostic(said);
  const tally = new Tally();
  const options = { seed: SEED, share: 1, folder: '', tally, onProgress };
  await runHistories(options, RUNS, (number) => new World(number));
  assert.deepEqual(tally.failures, []);
});
