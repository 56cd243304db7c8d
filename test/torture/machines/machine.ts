/** One of two machines with a copy, and what clients read from them: see test/torture/machines.ts. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { addAccount } from '../../../src/auth/accounts.ts';
import { openAccess } from '../../../src/auth/open-access.ts';
import { findAccess } from '../../../src/auth/spare-copy.ts';
import { createShipper, type Shipper } from '../../../src/copy/ship.ts';
import { beginEpoch, createFollower, type Follower } from '../../../src/copy/standby.ts';
import { compactNow } from '../../../src/ingest/apply/remove-rows.ts';
import { type StreamWriter, streamWriter } from '../../../src/ingest/apply/stream-writer.ts';
import {
  type CopyDecisions,
  copyDecisions,
  createDecidedEntry,
  noteDecided,
} from '../../../src/ingest/threads/decisions.ts';
import type { Mark } from '../../../src/log/format.ts';
import { logWriter } from '../../../src/log/log-writer.ts';
import { type Recovered, recoverDetections } from '../../../src/log/recover.ts';
import { findTail } from '../../../src/log/torn-end.ts';
import { reasonIfRefused } from '../../../src/refused.ts';
import { writing } from '../../../src/store/database.ts';
import { dataFolder } from '../../../src/store/folder.ts';
import { readLogMark } from '../../../src/store/log-mark.ts';
import { ensureRole, readRole } from '../../../src/store/role.ts';
import { restoreFrom } from '../../support/copy-at.ts';
import { batchOf } from '../../support/history.ts';
import { type MemoryPlace, memoryPlace } from '../../support/memory-place.ts';

/** Small, so that segments close and are merged. */
const SEGMENT_BYTES = 16 * 1024;

export type Row = Readonly<{ position: number; version: number; body: string }>;

/** What clients have read, wherever. */
export class Client {
  readonly #bodies = new Map<string, string>();
  /** By id: what it has now. */
  readonly has = new Map<string, Row>();
  cursor = 0;
  readonly positions = new Set<number>();

  read(rows: readonly Row[]): void {
    for (const row of rows) {
      const id = idOf(row);
      for (const [what, key] of [
        ['position', `p ${row.position}`],
        ['version', `${id} ${row.version}`],
      ] as const) {
        const before = this.#bodies.get(key);
        assert.ok(before === undefined || before === row.body, `two contents for one ${what}: ${key}`);
        this.#bodies.set(key, row.body);
      }
      this.positions.add(row.position);
      this.cursor = Math.max(this.cursor, row.position);
      if (row.version > (this.has.get(id)?.version ?? 0)) this.has.set(id, row);
    }
  }
}

/** The copy must have an entry first. */
class Undecided extends Error {}

/** One of the two machines, with what its process has in memory. */
export class Machine {
  readonly folder;
  readonly place: MemoryPlace;
  readonly #aheadMs: number;
  #nowMs = Date.parse('2026-11-20T09:00:00Z');
  #recovered: Recovered | null = null;
  #writer: StreamWriter | null = null;
  #shipper: Shipper | null = null;
  /** As in its configuration. */
  isStandby: boolean;
  isTakenOver = false;

  /** As in its configuration: whether transactions wait for the copy. */
  waits = false;
  readonly #decided = createDecidedEntry();
  #decisions = this.#newDecisions();

  constructor(root: string, objects: Map<string, Buffer>, isStandby: boolean, aheadMs: number) {
    this.folder = dataFolder(root);
    this.place = memoryPlace(objects);
    this.isStandby = isStandby;
    this.#aheadMs = aheadMs;
  }

  readonly now = (): number => {
    this.#nowMs += 1000;
    return this.#nowMs + this.#aheadMs;
  };

  get isWriter(): boolean {
    return !this.isTakenOver && (!this.isStandby || readRole(this.folder).promoted);
  }

  get db() {
    return this.#open().db;
  }

  /** What a start does; where the last entry may be undecided, once the copy has it. */
  async start(): Promise<void> {
    const options = { folder: this.folder, onProgress() {}, between: async () => {} };
    ensureRole(this.folder);
    this.#decisions = this.#newDecisions();
    const decisions = this.#decisions;
    const recover = () => recoverDetections({ ...options, ...(this.isWriter && { decisions }) });
    const recovered = await recover().catch(async (error) => {
      if (!(error instanceof Undecided)) throw error;
      await this.#shipTo(findTail(this.folder.log).last);
      return recover();
    });
    recovered.log.close();
    const log = { folder: this.folder.log, segmentBytes: SEGMENT_BYTES };
    this.#recovered = await beginEpoch(
      { ...recovered, log: logWriter(log, findTail(this.folder.log)) },
      this.folder,
      (error) => Promise.reject(error),
    );
    if (this.isWriter) await this.#transact((writer) => decisions.begin(writer));
  }

  /** Without a word: what is in memory is gone. */
  kill(): void {
    this.#recovered?.log.close();
    this.#recovered?.db.close();
    this.#recovered = null;
    this.#writer = null;
    this.#shipper = null;
  }

  /** The first start, of a new installation. */
  async install(): Promise<void> {
    const { root, secret } = this.folder;
    mkdirSync(root);
    writeFileSync(secret, randomBytes(32));
    openAccess(root, { operation: { kind: 'test' }, create: true }).close();
    await this.start();
  }

  /** Restores the copy as a standby, and starts. */
  async becomeStandby(): Promise<void> {
    const { folder, place, now } = this;
    place.before = () => {};
    await restoreFrom(place, folder.root, { standby: true, now });
    this.isStandby = true;
    this.isTakenOver = false;
    await this.start();
  }

  /** What a kill and the next start do. */
  async restart(): Promise<void> {
    this.kill();
    this.place.before = () => {};
    await this.start();
  }

  async apply(ids: readonly number[], score = 50): Promise<void> {
    await this.#transact((writer) => {
      const applier = writer.begin();
      const rowOf = (article_id: number) => ({ article_id, strength_score: score });
      applier.apply(batchOf(ids.map((id) => ({ content_type: 'text', row: rowOf(id) }))));
      writer.commit(applier, { kind: 'test' });
    });
  }

  /** Writes the copy where the program's thread stands still for it. */
  async #transact(work: (writer: StreamWriter) => void): Promise<void> {
    const writer = this.#asWriter();
    for (let attempt = work; ; attempt = () => writer.applyPending()) {
      try {
        return attempt(writer);
      } catch (error) {
        if (!(error instanceof Undecided)) throw error;
        await this.#shipTo(this.#open().log.last);
      }
    }
  }

  async compact(): Promise<void> {
    const work = { between: async () => {}, tell() {} };
    await this.#transact((writer) => writer.flush());
    await compactNow({ writer: this.#asWriter(), folder: this.folder }, work).catch(reasonIfRefused);
  }

  changeAccess(name: string): void {
    using access = openAccess(this.folder.root, { operation: { kind: 'test' } });
    writing(access, () =>
      addAccount(access, { id: name, name, daily_rows: null, print_metadata: false }, this.now()),
    );
  }

  async ship(): Promise<void> {
    await this.#shipTo(readLogMark(this.db));
  }

  async #shipTo(end: Mark | null): Promise<void> {
    this.#shipper ??= createShipper(this.place, this.folder);
    const access = findAccess(this.folder);
    await this.#shipper.ship(access, end);
    if (end !== null) noteDecided(this.#decided, end);
  }

  #newDecisions(): CopyDecisions {
    const undecided = () => {
      throw new Undecided();
    };
    const copy = { wait: this.waits };
    return copyDecisions({ shared: this.#decided, copy, propose: undecided, stopping: undecided });
  }

  async follow(work: (follower: Follower) => Promise<void>): Promise<void> {
    const follower = createFollower(this.place, this.folder, this.#open(), this.now, () => {});
    try {
      await work(follower);
    } finally {
      if (this.#recovered !== null) this.#recovered = { ...this.#recovered, log: follower.log() };
    }
  }

  turn(): Promise<void> {
    return this.follow((follower) => follower.turn());
  }

  rows(): Row[] {
    return this.db.prepare<[], Row>('SELECT position, version, body FROM stream_row ORDER BY position').all();
  }

  #open(): Recovered {
    assert.ok(this.#recovered);
    return this.#recovered;
  }

  #asWriter(): StreamWriter {
    const { db, log } = this.#open();
    const decisions = this.#decisions;
    const parts = { db, log, folder: this.folder.log, now: this.now, onDelivered() {}, decisions };
    this.#writer ??= streamWriter(parts);
    return this.#writer;
  }
}

export const idOf = ({ body }: Row): string => /^\{"id":"([^"]+)"/.exec(body)?.[1] ?? '';
